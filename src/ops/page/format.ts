/** Numbers and times as people read them. Times are UTC: all operators see the same. */
import type { Content } from '../../app/hooks/html.ts'
import { duration as inUnits } from '../../observability/request-story.ts'
import { say } from './parts.ts'
import texts from './texts.json' with { type: 'json' }

const digits = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })

export function number(value: number | null | undefined): string {
  return value === null || value === undefined ? '–' : digits.format(value)
}

export function percent(share: number | null | undefined): string {
  return share === null || share === undefined ? '–' : `${number(share * 100)}\u00a0%`
}

export function duration(ms: number | null | undefined): string {
  return ms === null || ms === undefined ? '–' : inUnits(ms).replace(' ', '\u00a0')
}

/** `14:03:22`, with the date where that is another than today's. */
export function time(at: string | number): string {
  const [date = '', clock = ''] = new Date(at).toISOString().split('T')
  const isToday = new Date().toISOString().startsWith(date)
  return `${isToday ? '' : `${date} `}${clock.slice(0, 8)}`
}

export function ago(at: string | number | undefined): Content {
  if (at === undefined) return texts.times.never
  const ms = Date.now() - new Date(at).getTime()
  const { now, ago: past, in: coming } = texts.times
  if (Math.abs(ms) < 1000) return now
  return say(ms > 0 ? past : coming, { duration: duration(Math.abs(ms)) })
}

/** Of a usual User-Agent the browser and the system. */
export function browser(agent: string): string {
  const name = ['Edg', 'Firefox', 'Chrome', 'Safari'].find(each => agent.includes(`${each}/`))
  const [system] = /Windows|Mac OS X|Android|iPhone|iPad|Linux/.exec(agent) ?? []
  return name === undefined ? agent.slice(0, 40) : [name, system].filter(Boolean).join(', ')
}
