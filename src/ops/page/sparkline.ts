/** The last minutes as a small chart. The gateway keeps the numbers, so a new page has them too. */
import { html, type Html } from './html.ts'

const width = 300
const height = 60

export function sparkline(values: readonly number[], label: string, tone = 'accent'): Html {
  const top = Math.max(...values) || 1
  const start = width - values.length
  const points = values.map((value, index) => {
    return `${start + index},${(height - (value / top) * (height - 4)).toFixed(1)}`
  })
  const line = points.join(' ')
  return html`<svg
    class="spark ${tone}"
    viewBox="0 0 ${width} ${height}"
    preserveAspectRatio="none"
    role="img"
    aria-label="${label}"
    fill="currentColor"
  >
    <polygon points="${start},${height} ${line} ${width},${height}" opacity="0.1" />
    <polyline
      points="${line}"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      vector-effect="non-scaling-stroke"
    />
  </svg>`
}
