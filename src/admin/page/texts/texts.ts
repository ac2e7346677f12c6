/** All texts of the page: by key, in English and Chinese. */
import { configTexts } from './config.ts'
import { ledgerTexts } from './ledger.ts'
import { limitsTexts } from './limits.ts'
import { maintenanceTexts } from './maintenance.ts'
import { nowTexts } from './now.ts'
import { requestsTexts } from './requests.ts'
import { sessionsTexts } from './sessions.ts'
import { shellTexts } from './shell.ts'

export type Texts = Readonly<Record<string, readonly [english: string, chinese: string]>>

export const texts = {
  ...shellTexts,
  ...nowTexts,
  ...requestsTexts,
  ...sessionsTexts,
  ...limitsTexts,
  ...configTexts,
  ...maintenanceTexts,
  ...ledgerTexts
} satisfies Texts

export type TextKey = keyof typeof texts
