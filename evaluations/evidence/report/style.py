"""What the report page looks like: on paper, on a telephone, in the dark."""

PAGE_STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fff; --sheet: #f6f7f9; --ink: #1c2430; --soft: #5b6675; --line: #dfe3e9; --accent: #2456a6;
  --good: #1a7f4b; --good-back: #e3f4ea; --bad: #b3261e; --bad-back: #fbe6e4; --note: #8a5a00; --note-back: #fbf0d9;
  --none: #9aa3b0; --neither: #c98b1b;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14181f; --sheet: #1c222b; --ink: #e6eaf0; --soft: #a0abba; --line: #323b48; --accent: #8ab4f8;
    --good: #5fce94; --good-back: #16352599; --bad: #ff8f86; --bad-back: #4a1d1a99; --note: #f0bf60;
    --note-back: #43321299; --none: #5d6878; --neither: #d9a441;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 60rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; overflow-wrap: anywhere;
}
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; letter-spacing: -.015em; }
h2 { font-size: 1.25rem; margin: 2.75rem 0 .6rem; padding-top: .9rem; border-top: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.6rem 0 .4rem; }
p { margin: .7rem 0; max-width: 46rem; }
ul { margin: .4rem 0; padding-left: 1.2rem; max-width: 46rem; }
.under, .soft { color: var(--soft); }
.under { margin: 0; }
code { font: .86em/1.4 ui-monospace, "SF Mono", Consolas, monospace; }
.command {
  display: block; margin: .5rem 0; padding: .6rem .8rem; background: var(--sheet); border-radius: .4rem;
  overflow-wrap: anywhere;
}
.facts {
  display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .15rem 1.2rem; margin: 1.2rem 0;
  padding: .9rem 1.1rem; background: var(--sheet); border-radius: .5rem; font-size: .92rem;
}
.facts dt { color: var(--soft); }
.facts dd { margin: 0; }
.warning { padding: .7rem 1rem; border-left: .25rem solid var(--note); background: var(--note-back); }
.wide { overflow-x: auto; margin: .7rem 0; overflow-wrap: normal; }
.wide td { max-width: 24rem; overflow-wrap: break-word; }
.trajectories td { min-width: 6.5rem; }
.trajectories td:first-child { width: 30%; }
.trajectories td:last-child { width: 34%; }
.trajectories .soft { white-space: nowrap; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; font-variant-numeric: tabular-nums; }
th, td { padding: .4rem .7rem .4rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th { font-weight: 600; }
thead th { color: var(--soft); font-weight: 500; font-size: .85rem; vertical-align: bottom; }
.number { text-align: right; white-space: nowrap; overflow-wrap: normal; }
.number + :not(.number) { padding-left: 1.4rem; }
td:last-child, th:last-child { padding-right: .1rem; }
.interval { color: var(--soft); font-size: .92em; white-space: nowrap; }
.name { white-space: nowrap; }
.claims td { padding-top: .55rem; padding-bottom: .55rem; }
.claims td:first-child { width: 4.4rem; }
.claims strong { display: block; font-weight: 600; }
.places { color: var(--soft); font-size: .85rem; }
.result {
  display: inline-block; min-width: 3.2rem; padding: .1rem .4rem; border-radius: .3rem; text-align: center;
  font: 600 .74rem/1.5 system-ui, sans-serif; letter-spacing: .04em;
}
.pass { color: var(--good); background: var(--good-back); }
.fail { color: var(--bad); background: var(--bad-back); }
.note { color: var(--note); background: var(--note-back); }
.rate { display: flex; flex-wrap: wrap; align-items: baseline; gap: .2rem .9rem; margin: .6rem 0; }
.rate b { font-size: 2.6rem; line-height: 1.1; letter-spacing: -.02em; }
svg { display: block; width: 100%; height: auto; margin: .8rem 0; }
.bar { height: 1.4rem; border-radius: .3rem; }
.intervals { max-width: 30rem; }
.intervals text {
  font: 12px system-ui, sans-serif; fill: var(--ink); paint-order: stroke; stroke: var(--paper); stroke-width: 4px;
}
.intervals .tick { fill: var(--soft); font-size: 11px; }
.intervals .rule { stroke: var(--line); }
.intervals .reach { stroke: var(--accent); stroke-width: 2; }
.intervals .dot { fill: var(--accent); }
.is-1 { fill: var(--good); color: var(--good); } .is-0 { fill: var(--bad); color: var(--bad); }
.is-2 { fill: var(--neither); color: var(--neither); } .is-none { fill: var(--none); color: var(--none); }
.key::before {
  content: ""; display: inline-block; width: .7em; height: .7em; margin-right: .5em; border-radius: .15em;
  background: currentColor;
}
.key span { color: var(--ink); }
footer {
  margin-top: 3rem; padding-top: .9rem; border-top: 1px solid var(--line); color: var(--soft); font-size: .88rem;
}
@media (max-width: 34rem) {
  body { padding: 1.4rem .9rem 3rem; }
  h1 { font-size: 1.5rem; }
  .facts { grid-template-columns: minmax(0, 1fr); }
  .facts dt { margin-top: .3rem; font-size: .82rem; }
  th, td { padding-right: .5rem; }
  .trajectories :is(table, tbody) { display: block; }
  .trajectories thead { display: none; }
  .trajectories tr {
    display: grid; grid-template-columns: minmax(0, 1fr) max-content; gap: .1rem .8rem; padding: .5rem 0;
    border-bottom: 1px solid var(--line);
  }
  .trajectories td:nth-child(n) { padding: 0; border: 0; min-width: 0; width: auto; }
  .trajectories td:nth-child(n + 3) { grid-column: 1 / -1; }
}
@page { margin: 16mm; }
@media print {
  :root {
    --paper: #fff; --sheet: #fff; --ink: #000; --soft: #444; --line: #bbb; --accent: #1d4a91; --good: #14633a;
    --good-back: #fff; --bad: #96201a; --bad-back: #fff; --note: #6d4700; --note-back: #fff; --none: #999;
    --neither: #b07a17;
  }
  body { max-width: none; padding: 0; font-size: 10pt; }
  h2 { break-after: avoid; margin-top: 1.6rem; }
  h3 { break-after: avoid; }
  tr, .facts, svg { break-inside: avoid; }
  thead { display: table-header-group; }
  .wide { overflow: visible; }
  .trajectories :is(table, th) { font-size: 8.5pt; line-height: 1.3; }
  .trajectories td { min-width: 5rem; padding: .2rem .5rem .2rem 0; }
  .result { border: 1px solid currentColor; }
  svg, .key::before { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""
