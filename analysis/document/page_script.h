// The script of the report page: sorts and filters tables, copies commands. The page is complete
// without it. The page's content security policy admits exactly this text, by its hash. It contains
// no '<', so that the page stays well-formed XML.
#pragma once

namespace paceline {

constexpr char kPageScript[] = R"(
const value = row => at => row.cells[at].dataset.value ?? row.cells[at].textContent;
for (const head of document.querySelectorAll('.results thead th')) {
  const button = document.createElement('button');
  button.title = 'Sort';
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener('click', () => {
    const at = head.cellIndex;
    const sign = head.getAttribute('aria-sort') === 'ascending' ? -1 : 1;
    for (const each of head.parentNode.cells) each.removeAttribute('aria-sort');
    head.setAttribute('aria-sort', sign > 0 ? 'ascending' : 'descending');
    const isGap = text => text === '' || text === '–';
    for (const body of head.closest('table').tBodies) {
      body.append(...[...body.querySelectorAll('tr:has(td)')].sort((a, b) => {
        const [x, y] = [value(a)(at), value(b)(at)];
        if (isGap(x) || isGap(y)) return isGap(x) - isGap(y);
        return sign * (x - y || x.localeCompare(y, 'en', {numeric: true}));
      }));
    }
  });
}
for (const table of document.querySelectorAll('.results')) {
  const rows = table.querySelectorAll('tr:has(td)');
  if (!(rows.length > 11)) continue;
  const field = document.createElement('input');
  field.type = 'search';
  field.placeholder = field.ariaLabel = 'Show only rows with';
  table.parentNode.before(field);
  field.addEventListener('input', () => {
    for (const row of rows) {
      row.hidden = !row.textContent.toLowerCase().includes(field.value.toLowerCase());
    }
  });
}
for (const code of document.querySelectorAll('code')) {
  const button = document.createElement('button');
  button.textContent = 'Copy';
  code.after(' ', button);
  button.addEventListener('click', async () => {
    getSelection().selectAllChildren(code);
    await navigator.clipboard?.writeText(code.textContent);
    button.textContent = 'Copied';
  });
}
)";
// SHA-256 of the text above, in base64.
constexpr char kPageScriptHash[] = "sha256-VdaEb+zwImHpOlGSsDLn2hbPhvpj3vS3m2c0Q2DG0Q4=";

}  // namespace paceline
