/** Holds sessions against what their credential source says of their users now. */
import type { Session } from './record.ts'

/** What becomes of a session. */
export type Review =
  | 'unchanged'
  /** The user is gone, disabled, or has another password. */
  | 'refused'
  /** The user is another one now. */
  | {
      /**
       * The session with what both the record and this process grant: what may be served at once.
       */
      readonly narrowed: Session
      /** The session as it is to be from now on, where this process knows the latest. */
      readonly renewed: Session
    }

export interface Reviewer {
  readonly review: (session: Session) => Review
  /**
   * Whether no replica has read a later state of the source. One that lags behind refuses and
   * narrows for itself, but changes nothing in the store: it would end what a later state allows.
   * @throws StoreUnavailable
   */
  readonly isLatest: (source: string) => Promise<boolean>
}

/** Sources that say nothing more of their users once these have signed in. */
export const noReview: Reviewer = {
  review: () => 'unchanged',
  isLatest: async () => true
}
