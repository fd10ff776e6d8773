// Shows a new view from its top, however far down the one before was scrolled.
export default function ({ data }) {
  if (window.l2mView !== data) {
    document.querySelector("[data-testid=stMain]")?.scrollTo(0, 0);
  }
  window.l2mView = data;
}
