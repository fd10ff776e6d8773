// Tells the server which cell of a chart was clicked: the nearest element that carries data-pick, its chart's name in data-chart.
export default function ({ data, setTriggerValue }) {
  const listen = (event) => {
    const cell = event.target.closest?.("[data-pick]");
    if (cell?.closest("[data-chart]")?.dataset.chart === data) {
      setTriggerValue("pick", cell.dataset.pick);
    }
  };
  document.addEventListener("click", listen);
  return () => document.removeEventListener("click", listen);
}
