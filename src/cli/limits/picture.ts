/** Draws a replay as SVG: requests over time, and below them the refusals of each limit. */
import { ownMember } from '../../config/schema/visit.ts'
import type { Column, ReplayReport } from '../../limits/replay/report.ts'

const page = { width: 960, left: 72, right: 24, top: 104 }
const plot = { width: page.width - page.left - page.right, height: 170, gap: 66 }
/** Distinct for colour-blind readers (after Okabe and Ito), and visible on white and on black. */
const colours = ['#2484c6', '#009e73', '#cc79a7', '#b8860b', '#8c6bb1', '#b5534b']
const refusal = '#d55e00'
const grey = '#7f8a96'

type Series = readonly [name: string, colour: string, values: readonly number[]]

export function picture({
  requests,
  refused,
  from = '',
  to = '',
  columnMs,
  columns,
  limits
}: ReplayReport): string {
  const over = limits.filter(limit => limit.refused > 0)
  const named = over.slice(0, colours.length)
  const rest = over.slice(colours.length)
  const of = (column: Column, names: ReadonlyArray<{ readonly limit: string }>) =>
    names.reduce((sum, { limit }) => sum + (ownMember(column.byLimit, limit) ?? 0), 0)
  const refusals: Series[] = named.map((each, index) => [
    `${each.limit}${each.mode === 'shadow' ? ' (shadow)' : ''}: ${figure(each.refused)}`,
    colours[index] as string,
    columns.map(column => of(column, [each]))
  ])
  if (rest.length > 0) {
    refusals.push([
      `${rest.length} other limits: ${figure(rest.reduce((sum, each) => sum + each.refused, 0))}`,
      grey,
      columns.map(column => of(column, rest))
    ])
  }
  const all: Series[] = [
    [
      `let pass: ${figure(requests - refused)}`,
      grey,
      columns.map(column => column.requests - column.refused)
    ],
    [`refused: ${figure(refused)}`, refusal, columns.map(column => column.refused)]
  ]
  const second = page.top + plot.height + plot.gap
  const bottom = second + plot.height
  const height = bottom + 64
  const each = widthInWords(columnMs)
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${page.width} ${height}" width="${page.width}" height="${height}" role="img" aria-labelledby="title about" font-family="system-ui, sans-serif" font-size="12">
<title id="title">Limits replayed</title>
<desc id="about">${figure(requests)} requests, ${figure(refused)} of them refused, from ${from} to ${to}.</desc>
<style>text{fill:#24292f}.soft{fill:#57606a}.line{stroke:#8c959f;stroke-opacity:.35}.axis{stroke:#8c959f}.page{fill:#fff}@media (prefers-color-scheme:dark){text{fill:#e6edf3}.soft{fill:#9da7b3}.page{fill:#0d1117}}</style>
<rect class="page" width="100%" height="100%"/>
<text x="${page.left}" y="26" font-size="17" font-weight="600">${figure(refused)} of ${figure(requests)} requests would have been refused</text>
<text x="${page.left}" y="45" class="soft">${from.slice(0, 19).replace('T', ' ')} to ${to.slice(0, 19).replace('T', ' ')} UTC</text>
${panel(`Requests, each ${each}`, all, page.top, columns)}
${panel(refusals.length === 0 ? 'Over a limit: nobody' : `Over a limit, each ${each}; limits in shadow refuse nothing`, refusals, second, columns)}
${times(columns, columnMs, bottom)}
<text x="${page.left + plot.width / 2}" y="${height - 12}" text-anchor="middle" class="soft">time (UTC)</text>
</svg>
`
}

function panel(
  title: string,
  series: readonly Series[],
  top: number,
  columns: readonly Column[]
): string {
  const sums = columns.map((_, index) =>
    series.reduce((sum, [, , values]) => sum + (values[index] ?? 0), 0)
  )
  const step = niceStep(Math.max(1, ...sums) / 4)
  const maxValue = step * Math.ceil(Math.max(1, ...sums) / step)
  const y = (value: number) => top + plot.height - (plot.height * value) / maxValue
  const lines = Array.from({ length: Math.round(maxValue / step) + 1 }, (_, index) => index * step)
  const below = columns.map(() => 0)
  const areas = series.map(([, colour, values]) => {
    let path = ''
    values.forEach((value, index) => {
      if (value === 0) return
      const from = below[index] as number
      below[index] = from + value
      // A minimum height, so that one refusal among many is visible.
      const height = Math.max(1.5, y(from) - y(from + value))
      path += `M${short(x(index, columns.length))} ${short(y(from))}v${short(-height)}h${short(plot.width / columns.length)}v${short(height)}z`
    })
    return `<path d="${path}" fill="${colour}"/>`
  })
  let at = page.left
  const legend = series.map(([name, colour]) => {
    const text = `<rect x="${at}" y="${top - 17}" width="10" height="10" rx="2" fill="${colour}"/><text x="${at + 15}" y="${top - 8}">${escape(name)}</text>`
    at += 15 + name.length * 6.6 + 18
    return text
  })
  return `<text x="${page.left}" y="${top - 24}" font-weight="600" class="soft">${escape(title)}</text>
${at > page.width ? stacked(series, top) : legend.join('')}
${lines.map(value => `<path class="line" d="M${page.left} ${short(y(value))}h${plot.width}"/><text x="${page.left - 8}" y="${short(y(value) + 4)}" text-anchor="end" class="soft">${figure(value)}</text>`).join('')}
${areas.join('')}
<path class="axis" fill="none" d="M${page.left} ${top}v${plot.height}h${plot.width}"/>`
}

/** A legend that is too long for one line is drawn in the plot. */
function stacked(series: readonly Series[], top: number) {
  return series
    .map(
      ([name, colour], index) =>
        `<rect x="${page.left + 10}" y="${top + 5 + index * 17}" width="10" height="10" rx="2" fill="${colour}"/><text x="${page.left + 25}" y="${top + 14 + index * 17}">${escape(name)}</text>`
    )
    .join('')
}

function times(columns: readonly Column[], columnMs: number, bottom: number): string {
  const first = columns[0]?.at ?? 0
  const span = Math.max(1, columns.length) * columnMs
  const step =
    [
      1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
      172_800, 604_800, 2_592_000
    ]
      .map(seconds => seconds * 1000)
      .find(each => span / each <= 8) ?? span
  let ticks = ''
  for (let at = Math.ceil(first / step) * step; at <= first + span; at += step) {
    const place = short(page.left + (plot.width * (at - first)) / span)
    ticks +=
      `<path class="axis" d="M${place} ${bottom}v5"/><text x="${place}" y="${bottom + 19}" ` +
      `text-anchor="middle" class="soft">${tickLabel(at, step)}</text>`
  }
  return ticks
}

function tickLabel(at: number, stepMs: number): string {
  const iso = new Date(at).toISOString()
  if (stepMs >= 86_400_000 || iso.slice(11, 19) === '00:00:00') return iso.slice(0, 10)
  return stepMs < 60_000 ? iso.slice(11, 19) : iso.slice(11, 16)
}

function x(index: number, count: number) {
  return page.left + (plot.width * index) / count
}
function short(value: number) {
  return String(Math.round(value * 100) / 100)
}
function figure(count: number) {
  return String(count).replace(/\B(?=(\d{3})+$)/g, '\u202f')
}
function escape(text: string) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
}

function niceStep(minStep: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, minStep)))
  return [1, 2, 5, 10].map(each => each * power).find(each => each >= minStep) ?? 1
}

function widthInWords(ms: number): string {
  const seconds = ms / 1000
  if (seconds === 1) return 'second'
  if (seconds < 120) return `${seconds} s`
  if (seconds < 7200) return `${Math.round(seconds / 6) / 10} min`
  return `${Math.round(seconds / 360) / 10} h`
}
