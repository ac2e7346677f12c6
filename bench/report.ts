/** The results as JSON, as text and as a picture. */
import type { Outcome, Verdict } from './cases.ts'
import type { Figure } from './rounds.ts'

const shown = (value: number) =>
  Number.isNaN(value)
    ? '–'
    : Math.abs(value) >= 1000
      ? Math.round(value).toLocaleString('en')
      : Math.abs(value) >= 100
        ? value.toFixed(0)
        : Math.abs(value) >= 10
          ? value.toFixed(1)
          : value.toFixed(2)

const spread = ({ median, min, max }: Figure) =>
  min === max ? shown(median) : `${shown(median)} (${shown(min)}–${shown(max)})`

type Kept = Pick<Verdict, 'moreIsBetter' | 'value' | 'must'>

/** The goal is for the median; what must be kept is for three quarters of the rounds. */
function verdictOf(verdict: Verdict): 'goal' | 'must' | 'missed' {
  const {
    moreIsBetter,
    value: { median },
    goal
  } = verdict
  const hasGoal = moreIsBetter === true ? median >= goal : median <= goal
  if (hasGoal) return 'goal'
  return isKept(verdict) ? 'must' : 'missed'
}

/** Whether three quarters of the rounds are within what must be kept. */
export function isKept({ moreIsBetter, value, must }: Kept): boolean {
  return moreIsBetter === true ? value.lowerQuartile >= must : value.upperQuartile <= must
}

const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`

export function markdown(outcomes: readonly Outcome[], about: string): string {
  const verdicts = outcomes.flatMap(outcome => outcome.verdicts)
  const goals =
    verdicts.length === 0
      ? []
      : [
          row(['Case', 'Measured', 'Goal', 'Must', '']),
          row(['---', '---', '---', '---', '---']),
          ...verdicts.map(verdict =>
            row([
              verdict.what,
              `${spread(verdict.value)} ${verdict.unit}`,
              `${verdict.goal} ${verdict.unit}`,
              `${verdict.must} ${verdict.unit}`,
              verdictOf(verdict)
            ])
          )
        ]
  const details = outcomes.flatMap(({ title, columns, rows }) => [
    '',
    `### ${title}`,
    '',
    row(['', ...columns]),
    row(['---', ...columns.map(() => '---:')]),
    ...rows.map(({ label, cells }) =>
      row([label, ...cells.map(cell => (cell === undefined ? '' : spread(cell)))])
    )
  ])
  return `${[about, '', 'The median of the rounds, and from the least to the most.', '', ...goals, ...details].join('\n')}\n`
}

const width = 880
const left = 350
/** Room for the figure behind a bar. */
const right = 90
const barHeight = 22

/** Two panels: CPU time per request of all who were asked the same, and each goal with what was reached. */
export function chart(outcomes: readonly Outcome[], about: string): string {
  const parts: string[] = []
  let y = 34
  const text = (x: number, at: number, content: string, more = '') =>
    parts.push(
      `<text x="${x}" y="${at}" ${more}>${content.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</text>`
    )
  const rect = (x: number, at: number, wide: number, high: number, kind: string) =>
    parts.push(
      `<rect x="${x}" y="${at}" width="${Math.max(1, wide).toFixed(1)}" height="${high}" class="${kind}"/>`
    )
  const first = outcomes.find(
    ({ columns }) => columns[0] === 'CPU µs' && columns.includes('ratio to bare plugin')
  )
  if (first !== undefined) {
    text(16, y, 'CPU µs per request, and from the least to the most of the rounds', 'class="title"')
    text(16, y + 18, first.title)
    y += 30
    const most = Math.max(...first.rows.map(({ cells: [cpu] }) => cpu?.max ?? 0))
    const scale = (width - left - right - 20) / most
    for (const {
      label,
      cells: [cpu]
    } of first.rows) {
      if (cpu === undefined) continue
      rect(
        left,
        y + 3,
        cpu.median * scale,
        barHeight - 6,
        label === 'Console Gateway' ? 'own' : 'other'
      )
      parts.push(
        `<line x1="${(left + cpu.min * scale).toFixed(1)}" x2="${(left + cpu.max * scale).toFixed(1)}" y1="${y + barHeight / 2}" y2="${y + barHeight / 2}" class="spread"/>`
      )
      text(left - 8, y + 15, label, 'text-anchor="end"')
      text(left + cpu.max * scale + 8, y + 15, shown(cpu.median))
      y += barHeight
    }
    y += 30
  }
  const verdicts = outcomes.flatMap(outcome => outcome.verdicts)
  if (verdicts.length > 0) {
    text(16, y, 'Goals', 'class="title"')
    text(
      16,
      y + 18,
      'The bar is what was measured, the thin mark the goal, the thick one what must be kept. Each has a scale of its own.'
    )
    y += 30
    for (const verdict of verdicts) {
      const { what, value, unit, goal, must } = verdict
      // Each goal has a scale of its own: its bound stands at the same place.
      const scale = ((width - left - right) * 0.7) / Math.max(goal, must)
      rect(
        left,
        y + 3,
        Math.min(value.median * scale, width - left - right),
        barHeight - 6,
        verdictOf(verdict)
      )
      for (const [at, kind] of [
        [goal, 'goal-mark'],
        [must, 'must-mark']
      ] as const) {
        rect(left + at * scale, y, kind === 'must-mark' ? 3 : 1.5, barHeight, kind)
      }
      text(left - 8, y + 15, what, 'text-anchor="end"')
      text(width - right + 8, y + 15, `${shown(value.median)} ${unit}`)
      y += barHeight
    }
    y += 20
  }
  // In two lines: one would be too long.
  const cut = about.indexOf(';') + 1
  text(16, y, about.slice(0, cut), 'class="about"')
  text(16, y + 14, about.slice(cut).trim(), 'class="about"')
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y + 30}" font-family="system-ui, sans-serif" font-size="12">
<style>
text { fill: #222 } .title { font-weight: 600; font-size: 13px } .about { fill: #666; font-size: 10px }
.own { fill: #1668dc } .other { fill: #b8c2cc } .spread { stroke: #222; stroke-width: 1.5 }
.goal { fill: #52a36b } .must { fill: #d8a13a } .missed { fill: #cf5b52 } .goal-mark { fill: #2b6b40 } .must-mark { fill: #222 }
</style>
<rect width="100%" height="100%" fill="#fff"/>
${parts.join('\n')}
</svg>
`
}
