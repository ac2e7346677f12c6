/** All texts of the page, by key. */
import { configTexts } from './config.ts'
import { limitsTexts } from './limits.ts'
import { maintenanceTexts } from './maintenance.ts'
import { nowTexts } from './now.ts'
import { requestsTexts } from './requests.ts'
import { sessionsTexts } from './sessions.ts'
import { shellTexts } from './shell.ts'

export type Texts = Readonly<Record<string, string>>

export const texts = {
  ...shellTexts,
  ...nowTexts,
  ...requestsTexts,
  ...sessionsTexts,
  ...limitsTexts,
  ...configTexts,
  ...maintenanceTexts
} satisfies Texts

export type TextKey = keyof typeof texts
