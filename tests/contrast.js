(() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  // Whatever a colour is written as, one pixel of it is numbers.
  const parsed = (text) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a), 1];
  const linear = (part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const chain = (each) => (each ? [each, ...chain(each.parentElement)] : []);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches && getComputedStyle(document.documentElement).colorScheme.includes("dark");
  const canvasColour = dark ? [18, 18, 18, 1] : [255, 255, 255, 1];
  const behind = (each) => chain(each).map((one) => parsed(getComputedStyle(one).backgroundColor)).reduceRight((below, above) => over(above, below), canvasColour);
  // A chart's words may stand on a bar: the last shape before them that is there and filled.
  const shapeUnder = (text) => {
    const {x, y, width, height} = text.getBoundingClientRect();
    const [across, down] = [x + width / 2, y + height / 2];
    const shapes = [...text.ownerSVGElement.querySelectorAll("path, rect, polygon, circle")];
    return shapes.filter((each) => {
      const box = each.getBoundingClientRect();
      const before = each.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING;
      const inside = box.left <= across && across <= box.right && box.top <= down && down <= box.bottom;
      const style = getComputedStyle(each);
      return before && inside && box.width > 1 && box.height > 1 && style.fill !== "none" && parsed(style.fill)[3] > 0 && !each.closest("defs, clipPath, marker");
    }).pop();
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = new Map();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node.textContent.trim();
    const element = node.parentElement;
    if (!text || element.closest("script, style, noscript, template, [aria-hidden=true], :disabled")) continue;
    const style = getComputedStyle(element);
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    // Not there, or moved off the page for those who hear it.
    if (!box.width || !box.height || box.right < 0 || box.bottom < 0 || style.visibility !== "visible") continue;
    const drawn = element.namespaceURI.endsWith("svg");
    const shape = drawn ? shapeUnder(element) : undefined;
    const page = behind(element);
    const paper = shape ? over(parsed(getComputedStyle(shape).fill), page) : page;
    const inside = drawn ? style.fill : style.color;
    const shown = chain(element).reduce((seen, one) => seen * Number(getComputedStyle(one).opacity), 1);
    // What waits to be pointed at, or to be opened, is not there yet.
    if (!shown) continue;
    const [r, g, b, a] = parsed(inside);
    const ink = over([r, g, b, a * shown], paper);
    const pixels = parseFloat(style.fontSize);
    const large = pixels >= 24 || (pixels >= 18.66 && Number(style.fontWeight) >= 700);
    const has = ratio(ink, paper);
    if (has < (large ? 3 : 4.5)) {
      const where = element.tagName.toLowerCase() + (element.className && element.className.baseVal === undefined ? "." + element.className.trim().replaceAll(/\s+/g, ".") : "");
      found.set(`${where} ${has.toFixed(2)}`, text.slice(0, 40));
    }
  }
  return [...found].map(([where, text]) => `${where}: ${text}`);
})()
