/** What operators see and act on. */
import type { Config } from '../config/schema/config.ts'
import type { Services } from '../services/services.ts'
import type { Session } from '../session/types.ts'

type Used = 'sessions' | 'lockouts' | 'callers' | 'highestUse' | 'maintenance' | 'failures' | 'log'

export interface Desk extends Pick<Services, Used> {
  /** The one in force. */
  readonly config: () => Config
  /** Signs sessions that have ended out at their back-ends; not awaited. */
  readonly signOut: (ended: readonly Session[]) => void
}
