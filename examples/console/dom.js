/** Making elements, and writing times, waits and amounts for people. */

/** @typedef {string | number | boolean | undefined} Attribute */
/** @typedef {Node | string | undefined | false} Child */

/**
 * Data only ever becomes text or an attribute's value, never markup.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, Attribute>} [attributes] `undefined` and `false` leave one out
 * @param {Child[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) {
      made.setAttribute(name, value === true ? '' : String(value))
    }
  }
  made.append(...children.filter(child => child !== undefined && child !== false))
  return made
}

/** Both, since scripts and tests look for the one or the other. */
export const named = (/** @type {string} */ name) => ({ 'id': name, 'data-testid': name })

export const textOf = (/** @type {unknown} */ value) =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : ''

/**
 * A picture from here or from a data URI, or else initials. Another site's picture would tell it who looks.
 * @param {unknown} source
 * @param {string} initials
 * @param {string} className
 */
export function picture(source, initials, className) {
  const fallback = () => element('span', { 'class': className, 'aria-hidden': 'true' }, initials)
  const address = textOf(source)
  if (!/^data:image\/|^\/(?!\/)/.test(address)) return fallback()
  const image = element('img', { class: className, src: address, alt: '' })
  image.addEventListener('error', () => image.replaceWith(fallback()), { once: true })
  return image
}

const segmenter = new Intl.Segmenter()

export function initialsOf(/** @type {string} */ name) {
  const words = name.trim().split(/\s+/)
  const letters = [words[0], words.length > 1 ? words.at(-1) : ''].map(
    word => segmenter.segment(word ?? '').containing(0)?.segment ?? ''
  )
  return letters.join('').toUpperCase() || '?'
}

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
const shortDate = new Intl.DateTimeFormat('en', { dateStyle: 'medium' })
const fullDate = new Intl.DateTimeFormat('en', { dateStyle: 'full', timeStyle: 'short' })

/** Relative within a week, then a date; what is no time stays as it is. */
export function timeElement(/** @type {unknown} */ value) {
  const moment = new Date(typeof value === 'number' ? value : textOf(value))
  if (Number.isNaN(moment.getTime())) return element('span', {}, textOf(value))
  return element(
    'time',
    { datetime: moment.toISOString(), title: fullDate.format(moment) },
    timeText(moment)
  )
}

function timeText(/** @type {Date} */ moment) {
  const minutes = (moment.getTime() - Date.now()) / 60_000
  const distance = Math.abs(minutes)
  if (distance < 1) return 'just now'
  if (distance < 60) return relative.format(Math.trunc(minutes), 'minute')
  if (distance < 24 * 60) return relative.format(Math.trunc(minutes / 60), 'hour')
  if (distance < 7 * 24 * 60) return relative.format(Math.trunc(minutes / 60 / 24), 'day')
  return shortDate.format(moment)
}

export function waitText(/** @type {number} */ seconds) {
  if (seconds < 120) return seconds === 1 ? '1 second' : `${seconds} seconds`
  const minutes = Math.ceil(seconds / 60)
  return minutes < 120 ? `${minutes} minutes` : `${Math.ceil(minutes / 60)} hours`
}

const clockTime = new Intl.DateTimeFormat('en', { timeStyle: 'short' })

export const clockText = (/** @type {number} */ moment) => clockTime.format(moment)

/**
 * @param {unknown} amount
 * @param {unknown} currency
 */
export function moneyText(amount, currency) {
  if (typeof amount !== 'number') return textOf(amount) || '–'
  const isKnown = typeof currency === 'string' && /^[A-Z]{3}$/.test(currency)
  return new Intl.NumberFormat(
    'en',
    isKnown ? { style: 'currency', currency } : { minimumFractionDigits: 2 }
  ).format(amount)
}
