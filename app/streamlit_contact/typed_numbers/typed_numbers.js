// A browser's number field leaves out what it does not read: of 4,5 it makes 45, of 120/80 it makes 12080, of <5 it makes 5.
// Such a field is emptied, with words, and takes nothing more until it is begun anew, so that no rest of it is recorded.
const SAID = "l2m-not-taken";
const BEGINS_ANEW = new Set(["Backspace", "Delete", "Escape"]);

export default function () {
  let asked = null; // what was typed or pasted last, until the browser says what it took of it
  let refused = null; // the field that was emptied

  const isNumber = (field) => field instanceof HTMLInputElement && field.type === "number";

  const beginAnew = () => {
    refused?.closest("[data-testid=stNumberInput]")?.querySelector(`.${SAID}`)?.remove();
    refused = null;
  };

  const say = (field, text) => {
    const words = document.createElement("p");
    words.className = SAID;
    words.setAttribute("role", "alert");
    words.textContent =
      `Not taken: “${text}”. A number has digits and a point only, as 1234.5. Press Backspace, then write it anew.`;
    field.closest("[data-testid=stNumberInput]")?.append(words);
  };

  const refuse = ({ field, data }) => {
    asked = null;
    beginAnew();
    refused = field;
    field.select();
    document.execCommand("delete"); // as a person would, so that the page hears of it
    say(field, data);
  };

  const settle = () => asked && refuse(asked);

  const beforeInput = (event) => {
    if (!isNumber(event.target) || !event.inputType.startsWith("insert") || event.data === null) return;
    settle(); // typed so fast that the check of the character before has not come
    if (refused === event.target) {
      event.preventDefault();
      return;
    }
    const data = event.data.trim();
    if (!data && !event.target.value) return; // a blank before the number is no part of it
    asked = { field: event.target, data };
    setTimeout(settle);
  };

  const input = (event) => {
    if (asked && event.target === asked.field && (event.data === null || event.data.trim() === asked.data)) asked = null;
  };

  const keyDown = (event) => BEGINS_ANEW.has(event.key) && event.target === refused && beginAnew();
  const left = (event) => event.target === refused && beginAnew();

  const listeners = { beforeinput: beforeInput, input, keydown: keyDown, pointerdown: left, focusout: left };
  for (const [name, listen] of Object.entries(listeners)) document.addEventListener(name, listen, true);
  return () => {
    for (const [name, listen] of Object.entries(listeners)) document.removeEventListener(name, listen, true);
    beginAnew();
  };
}
