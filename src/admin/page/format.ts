/** Numbers, times and sizes as people read them. */
import { locale } from './words.ts'

const missing = '–'

const numberFormats = new Map<string, Intl.NumberFormat>()
const dateFormats = new Map<string, Intl.DateTimeFormat>()
const agoFormats = new Map<string, Intl.RelativeTimeFormat>()

/** Formats are kept: to make one takes longer than to draw a row of a table. */
function numberFormat(key: string, options: Intl.NumberFormatOptions): Intl.NumberFormat {
  return kept(numberFormats, key, () => new Intl.NumberFormat(locale, options))
}

function kept<T>(formats: Map<string, T>, key: string, create: () => T): T {
  let format = formats.get(key)
  if (format === undefined) formats.set(key, (format = create()))
  return format
}

function withDigits(value: number, maximumFractionDigits: number): string {
  return numberFormat(String(maximumFractionDigits), { maximumFractionDigits }).format(value)
}

/** Three significant digits; whole from 100 on. */
export function formatNumber(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return missing
  const digits = Math.abs(value) >= 100 ? 0 : 1
  return withDigits(value, Math.abs(value) < 1 ? 2 : digits)
}

/** @param value 0 to 1 */
export function formatShare(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return missing
  const percent = value * 100
  const digits = percent === 0 || percent >= 10 ? 0 : 1
  return `${withDigits(percent, digits)} %`
}

export function formatMs(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return missing
  if (ms >= 1000) return `${ms < 10_000 ? withDigits(ms / 1000, 2) : formatNumber(ms / 1000)} s`
  return `${withDigits(ms, ms < 10 ? 1 : 0)} ms`
}

const units: ReadonlyArray<readonly [Intl.RelativeTimeFormatUnit, number]> = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1]
]

/** Seconds in the largest unit that fits: `3 h`, `12 min`. */
export function formatSeconds(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return missing
  const [unit, size] = units.find(([, each]) => Math.abs(seconds) >= each) ?? ['second', 1]
  const value = Math.floor(seconds / size)
  return numberFormat(unit, { style: 'unit', unit, unitDisplay: 'short' }).format(value)
}

/** A time of the config, exactly, in the largest unit that divides it: `90 sec`, `36 hr`. */
export function formatDuration(ms: number): string {
  const [unit, size] = units.find(([, each]) => ms % (each * 1000) === 0) ?? ['millisecond', 0.001]
  const value = ms / (size * 1000)
  return numberFormat(unit, { style: 'unit', unit, unitDisplay: 'short' }).format(value)
}

export function formatBytes(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined || !Number.isFinite(bytes)) return missing
  const power = Math.min(3, Math.floor(Math.log2(Math.max(bytes, 1)) / 10))
  const value = bytes / 1024 ** power
  const number = withDigits(value, value < 10 ? 1 : 0)
  return `${number} ${['B', 'KiB', 'MiB', 'GiB'][power]}`
}

type Moment = string | number | null | undefined

/** The time of day; with the date where that is not today. */
export function formatTime(moment: Moment): string {
  if (moment === null || moment === undefined) return missing
  const date = new Date(moment)
  if (Number.isNaN(date.getTime())) return String(moment)
  const isToday = date.toDateString() === new Date().toDateString()
  const format = kept(
    dateFormats,
    String(isToday),
    () =>
      new Intl.DateTimeFormat(locale, {
        ...(!isToday && { year: 'numeric', month: 'short', day: 'numeric' }),
        hour: '2-digit',
        minute: '2-digit',
        second: '2-digit',
        hourCycle: 'h23'
      })
  )
  return format.format(date)
}

/** The distance from now, such as "3 minutes ago". */
export function formatAgo(moment: Moment): string {
  if (moment === null || moment === undefined) return missing
  const time = new Date(moment).getTime()
  if (Number.isNaN(time)) return String(moment)
  const seconds = (time - Date.now()) / 1000
  const [unit, size] = units.find(([, each]) => Math.abs(seconds) >= each) ?? ['second', 1]
  const format = kept(
    agoFormats,
    '',
    () => new Intl.RelativeTimeFormat(locale, { numeric: 'auto', style: 'short' })
  )
  return format.format(Math.round(seconds / size), unit)
}
