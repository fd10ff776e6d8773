// Tab goes from a button into what it opened, which is drawn at the page's end, and on to what follows the button;
// Shift+Tab goes back to the button.
const BODY = "[data-testid=stPopoverBody]";
const BUTTON = "[data-testid=stPopoverButton][aria-expanded=true]";
const STOPS = "a[href], button, input, select, textarea, summary, [tabindex]";

const opens = (button, body) => button.textContent.includes(body.getAttribute("aria-label"));
const stopsIn = (body) =>
  [...body.querySelectorAll(STOPS)].filter((stop) => stop.tabIndex >= 0 && !stop.disabled && stop.checkVisibility());

const nextOf = (from, backwards) => {
  const body = from.closest?.(BODY);
  const button = body && [...document.querySelectorAll(BUTTON)].find((each) => opens(each, body));
  if (button && backwards && stopsIn(body)[0] === from) {
    return button;
  }
  if (button && !backwards && stopsIn(body).at(-1) === from) {
    const outside = stopsIn(document).filter((stop) => !stop.closest(BODY));
    return outside[outside.indexOf(button) + 1];
  }
  if (from.matches?.(BUTTON) && !backwards) {
    const opened = [...document.querySelectorAll(BODY)].find((each) => opens(from, each));
    return opened && stopsIn(opened)[0];
  }
};

export default function () {
  const listen = (event) => {
    const next = event.key === "Tab" && nextOf(event.target, event.shiftKey);
    if (next) {
      event.preventDefault();
      next.focus();
    }
  };
  document.addEventListener("keydown", listen, true);
  return () => document.removeEventListener("keydown", listen, true);
}
