/** The page's words in the chosen language. */
import { isolated } from './plain-text.ts'
import { createStore, readSetting, writeSetting } from './store.ts'
import { texts, type TextKey } from './texts/texts.ts'

export type Language = 'en' | 'zh'

export const languages: ReadonlyArray<readonly [Language, string]> = [
  ['en', 'English'],
  ['zh', '中文']
]

function chosenLanguage(): Language {
  const language = readSetting('language') ?? navigator.language
  return language.toLowerCase().startsWith('zh') ? 'zh' : 'en'
}

export const language = createStore<Language>(chosenLanguage())

export function setLanguage(chosen: Language): void {
  writeSetting('language', chosen)
  document.documentElement.lang = localeOf(chosen)
  language.set(chosen)
}

export function localeOf(of: Language): string {
  return of === 'zh' ? 'zh-CN' : 'en'
}

type Values = Readonly<Record<string, string | number>>

/**
 * A text, with `{name}` replaced by its value, and `{n:session|sessions}` by the number and the
 * word for it.
 */
export function t(key: TextKey, values: Values = {}): string {
  return fillIn(texts[key][language.get() === 'zh' ? 1 : 0], values)
}

function fillIn(text: string, values: Values): string {
  return text.replaceAll(
    /\{(\w+)(?::([^|{}]*)\|([^|{}]*))?\}/g,
    (whole, name: string, singular?: string, plural?: string) => {
      const value = values[name]
      if (value === undefined) return whole
      const shown =
        typeof value === 'number' ? value.toLocaleString(localeOf(language.get())) : isolated(value)
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
