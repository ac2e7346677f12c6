/** A line chart of the last minutes, with its numbers as text for screen readers. */
import { type ComponentChildren, h } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import { locale, t } from '../words.ts'
import { historyLength } from '../live.ts'

export interface Line {
  readonly label: string
  /** 1 to 3, a colour of page.css (`--line-1`). */
  readonly colour: 1 | 2 | 3
  readonly values: ReadonlyArray<number | null>
}

interface ChartProps {
  readonly label: string
  readonly times: readonly number[]
  readonly lines: readonly Line[]
  readonly format: (value: number | null | undefined) => string
}

/** A new page shows its first minute large, and later all it knows. */
const minShownSeconds = 60

export function Chart({ label, times, lines, format }: ChartProps): ComponentChildren {
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(undefined)
  const isDark = useDarkScheme()
  const data = [times, ...lines.map(({ values }) => values)] as unknown as uPlot.AlignedData
  useEffect(() => {
    const element = place.current
    if (element === null) return undefined
    const chart = new uPlot(optionsOf(element, lines, format), data, element)
    plot.current = chart
    const observer = new ResizeObserver(() => {
      chart.setSize({ width: element.clientWidth, height: element.clientHeight })
    })
    observer.observe(element)
    return () => {
      observer.disconnect()
      chart.destroy()
    }
  }, [isDark, lines.map(line => line.label).join()])
  useEffect(() => plot.current?.setData(data))
  return h(
    'figure',
    { class: 'chart' },
    h(
      'figcaption',
      null,
      h('span', { class: 'chart-title' }, label),
      h(
        'span',
        { class: 'legend' },
        lines.map(line =>
          h(
            'span',
            { key: line.label },
            h('i', { class: `swatch line-${line.colour}` }),
            line.label,
            ' ',
            h('b', null, format(line.values.at(-1)))
          )
        )
      )
    ),
    h('div', {
      'class': 'plot',
      'ref': place,
      'role': 'img',
      'aria-label': summaryOf(lines, format)
    })
  )
}

/** The canvas has the colours of the scheme in which it was drawn. */
function useDarkScheme(): boolean {
  const scheme = matchMedia('(prefers-color-scheme: dark)')
  const [isDark, setDark] = useState(scheme.matches)
  useEffect(() => {
    const update = () => setDark(scheme.matches)
    scheme.addEventListener('change', update)
    return () => scheme.removeEventListener('change', update)
  }, [])
  return isDark
}

function summaryOf(lines: readonly Line[], format: ChartProps['format']): string {
  return lines
    .map(({ label, values }) => {
      const numbers = values.filter(value => value !== null)
      return t('now.chart', {
        label,
        now: format(values.at(-1)),
        max: format(numbers.length === 0 ? null : Math.max(...numbers)),
        minutes: historyLength / 60
      })
    })
    .join('. ')
}

function optionsOf(
  element: HTMLElement,
  lines: readonly Line[],
  format: ChartProps['format']
): uPlot.Options {
  const styles = getComputedStyle(element)
  const rem = Number.parseFloat(getComputedStyle(document.documentElement).fontSize)
  const colourOf = (name: string) => styles.getPropertyValue(name).trim()
  const axis = {
    stroke: colourOf('--text-2'),
    grid: { stroke: colourOf('--grid'), width: 1 },
    ticks: { show: false },
    font: `${0.79 * rem}px ${styles.fontFamily}`
  }
  const time = new Intl.DateTimeFormat(locale, {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23'
  })
  return {
    width: element.clientWidth,
    height: element.clientHeight,
    padding: [8, 2 * rem, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 } },
    scales: {
      x: {
        range: (_plot, min, max) => [
          Math.max(max - historyLength, Math.min(min, max - minShownSeconds)),
          max
        ]
      },
      y: { range: (_plot, _min, max) => [0, Math.max(max * 1.1, 1)] }
    },
    axes: [
      {
        ...axis,
        size: 1.9 * rem,
        space: 5 * rem,
        incrs: [15, 30, 60, 120],
        values: (_plot, ticks) => ticks.map(tick => time.format(tick * 1000))
      },
      {
        ...axis,
        size: 4 * rem,
        space: 2.4 * rem,
        values: (_plot, ticks) => ticks.map(tick => format(tick))
      }
    ],
    series: [
      {},
      ...lines.map(({ label, colour }) => ({
        label,
        stroke: colourOf(`--line-${colour}`),
        fill: colourOf(`--line-${colour}-fill`),
        width: 1.5,
        points: { show: false }
      }))
    ]
  }
}
