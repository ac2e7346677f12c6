import type { Gateway } from '../gateway.ts'
import type { createJudges } from './ended-sessions.ts'
import type { Route } from './route.ts'

/** What the routes of one generation share. */
export interface RouteServices extends Gateway {
  readonly routes: readonly Route[]
  /** Of responses that may say that the back-end's session has ended. */
  readonly judgeOf: ReturnType<typeof createJudges>
}
