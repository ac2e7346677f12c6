/** All texts of the page: by key, in English and Chinese. */
import { nowTexts } from './now.ts'
import { shellTexts } from './shell.ts'

export type Texts = Readonly<Record<string, readonly [english: string, chinese: string]>>

export const texts = { ...shellTexts, ...nowTexts } satisfies Texts

export type TextKey = keyof typeof texts
