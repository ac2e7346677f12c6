/** The page's words. */
import { isolated } from './plain-text.ts'
import { texts, type TextKey } from './texts/texts.ts'

type Values = Readonly<Record<string, string | number>>

/** Numbers and times are written as the words are, whatever the browser's language. */
export const locale = 'en'

/**
 * A text, with `{name}` replaced by its value, and `{n:session|sessions}` by the number and the
 * word for it.
 */
export function t(key: TextKey, values: Values = {}): string {
  const text: string = texts[key]
  return text.replaceAll(
    /\{(\w+)(?::([^|{}]*)\|([^|{}]*))?\}/g,
    (whole, name: string, singular?: string, plural?: string) => {
      const value = values[name]
      if (value === undefined) return whole
      const shown = typeof value === 'number' ? value.toLocaleString(locale) : isolated(value)
      if (singular === undefined) return shown
      return `${shown} ${value === 1 ? singular : plural}`
    }
  )
}

/** The text of a word that the gateway sent, such as a state; words without a text stay as sent. */
export function word(prefix: string, sent: string, values: Values = {}): string {
  const key = `${prefix}.${sent}`
  return Object.hasOwn(texts, key) ? t(key as TextKey, values) : sent
}
