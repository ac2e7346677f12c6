/** Values of the gateway's JSON as text. */

export function plainText(value: unknown): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'object' ? JSON.stringify(value) : String(value as string | number)
}

/** Letters of scripts that are written from right to left. */
const rightToLeft = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/
/** Marks that change the direction of the text behind them (UAX #9 §2). */
const marks = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/**
 * Outside text beside other words in one text: it does not change their order. Its marks are
 * shown, such as `\u202e`.
 */
export function isolated(text: string): string {
  const shown = text.replaceAll(
    marks,
    mark => `\\u${mark.charCodeAt(0).toString(16).padStart(4, '0')}`
  )
  return rightToLeft.test(shown) ? `\u2068${shown}\u2069` : shown
}
