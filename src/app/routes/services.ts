import type { Gateway } from '../gateway.ts'
import type { EndedSessions } from './ended-sessions.ts'
import type { Route } from './route.ts'

/** What the routes of one generation share. */
export interface RouteServices extends Gateway {
  readonly routes: readonly Route[]
  readonly endedSessions: EndedSessions
}
