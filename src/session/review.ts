/** Reviews sessions against the present state of their users at the credential source. */
import type { Session } from './record.ts'

/** The result of a review. */
export type Review =
  | 'unchanged'
  /** The user was removed, disabled, or has another password. */
  | 'refused'
  /** The user's roles or profile changed. */
  | {
      /**
       * The session with the rights that both the record and this process grant: safe to serve at
       * once.
       */
      readonly narrowed: Session
      /** The session's new content, provided that this process knows the latest state. */
      readonly renewed: Session
    }

export interface Reviewer {
  readonly review: (session: Session) => Review
  /**
   * Whether no replica has read a later state of the source. A process that lags behind refuses and
   * narrows for itself, but does not write: it would end sessions that the later state allows.
   * @throws StoreUnavailable
   */
  readonly isLatest: (source: string) => Promise<boolean>
}

/** For sources that give no user states after the sign-in. */
export const noReview: Reviewer = {
  review: () => 'unchanged',
  isLatest: async () => true
}
