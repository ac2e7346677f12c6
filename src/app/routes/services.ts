import type { Gateway } from '../gateway.ts'
import type { EndedSessions } from './ended-sessions.ts'
import type { PublicPaths } from './places.ts'

/** What the routes of one generation share. */
export interface RouteServices extends Gateway {
  readonly publicPaths: PublicPaths
  readonly endedSessions: EndedSessions
}
