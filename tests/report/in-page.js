// Runs in the browser, as a script of the page: what the tests ask of it. Answers are plain data.

/** Charts that are shown, with all that is drawn in them. */
function shownCharts() {
  const drawings = [...document.querySelectorAll(".chart svg")].filter(isShown);
  return drawings.map((svg) => {
    const box = boxOf(svg);
    const scale = box.width / svg.viewBox.baseVal.width;
    const attributes = [...svg.querySelectorAll("*")].flatMap((element) => [
      element.getAttribute("fill") ?? "",
      element.getAttribute("stroke") ?? "",
    ]);
    return {
      name: svg.getAttribute("aria-label"),
      box,
      ground: groundOf(svg),
      engines: named(attributes, /^var\(--engine-([a-z]+)\)$/),
      texts: [...svg.querySelectorAll("text")].map((text) => ({
        text: text.textContent,
        color: getComputedStyle(text).fill,
        sizePx: Number.parseFloat(getComputedStyle(text).fontSize) * scale,
        box: boxOf(text),
      })),
      axes: [...svg.querySelectorAll('[stroke="var(--axis)"]')].map(
        (line) => getComputedStyle(line).stroke,
      ),
    };
  });
}

/** Figures, and how many drawings of each are shown: one. */
function drawingsPerChart() {
  return [...document.querySelectorAll(".chart")].map(
    (chart) => [...chart.querySelectorAll("svg")].filter(isShown).length,
  );
}

/** Every element outside of charts that has text of its own. */
function shownTexts() {
  return [...document.querySelectorAll("body *:not(svg, svg *)")]
    .filter((element) => isShown(element) && ownText(element) !== "")
    .map((element) => ({
      text: ownText(element),
      color: getComputedStyle(element).color,
      ground: groundOf(element),
    }));
}

/** What stands out of the window to the right, apart from what may be scrolled in its own box. */
function overflowing() {
  const { clientWidth, scrollWidth } = document.documentElement;
  const found = [...document.querySelectorAll("body *:not(svg *, .scroll *)")]
    .filter((element) => isShown(element) && boxOf(element).right > clientWidth + 0.5)
    .map((element) => `${element.tagName}.${element.className}`);
  return scrollWidth > clientWidth ? ["the page", ...found] : found;
}

function openDetails() {
  for (const details of document.querySelectorAll("details")) details.open = true;
}

function engineColors() {
  const style = getComputedStyle(document.documentElement);
  const names = ["situ", "cluster", "lmdb", "sqlite", "redis", "postgres"];
  return Object.fromEntries(
    names.map((name) => [name, style.getPropertyValue(`--engine-${name}`).trim()]),
  );
}

function isShown(element) {
  return element.getClientRects().length > 0 && element.checkVisibility();
}

function ownText(element) {
  return [...element.childNodes]
    .filter((node) => node.nodeType === Node.TEXT_NODE)
    .map((node) => node.textContent.trim())
    .join(" ")
    .trim();
}

function groundOf(element) {
  for (let own = element; own !== null; own = own.parentElement) {
    const color = getComputedStyle(own).backgroundColor;
    if (color !== "rgba(0, 0, 0, 0)") return color;
  }
  return "rgb(255, 255, 255)";
}

function boxOf(element) {
  const { left, right, top, bottom, width, height } = element.getBoundingClientRect();
  return { left, right, top, bottom, width, height };
}

function named(texts, pattern) {
  return [...new Set(texts.flatMap((text) => pattern.exec(text)?.[1] ?? []))];
}

window.report = {
  shownCharts,
  drawingsPerChart,
  shownTexts,
  overflowing,
  openDetails,
  engineColors,
};
