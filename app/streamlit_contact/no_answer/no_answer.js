// Says in our words that the server does not answer. Only what text nodes hold is changed: the nodes are Streamlit's.
const THEIRS = "Connection error";
const TITLE = "L2M does not answer";
const WORDS =
  "What was recorded is kept. This page goes on by itself once L2M answers again. " +
  "Where it runs on your own computer, start it as before; else ask whoever runs it.";

const textsIn = (element) => {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) found.push(walker.currentNode);
  return found;
};

const reword = () => {
  for (const dialog of document.querySelectorAll("[role=dialog]")) {
    const title = dialog.querySelector("[slot=title]");
    if (title?.textContent !== THEIRS || !title.nextElementSibling) continue;
    const [first, ...rest] = textsIn(title.nextElementSibling);
    if (!first) continue; // its words are not there yet
    first.nodeValue = WORDS;
    for (const text of rest) text.nodeValue = "";
    for (const code of dialog.querySelectorAll("pre, code")) code.hidden = true;
    title.firstChild.nodeValue = TITLE;
  }
};

export default function () {
  reword();
  const observer = new MutationObserver(reword);
  observer.observe(document.body, { childList: true, subtree: true });
  return () => observer.disconnect();
}
