/** What the lines of an access log were, counted for the notes of `limits simulate`. */
export interface LineCounts {
  lines: number
  /** Lines about something else than a request, such as a sign-in. */
  others: number
  /** Neither JSON of the gateway nor Combined Log Format. */
  broken: number
  /** Requests that no limit looks at: the console's files, and preflights. */
  unlimited: number
  /** Requests of somebody signed in, but the log does not say who. */
  unattributed: number
  /** Of all, those in Combined Log Format. */
  combined: number
  /** Sign-ins that were refused for too many attempts: whether the password was right was not looked at. They count as wrong. */
  undecidedSignIns: number
  /** Requests with the cookie of a session that was over, if the line does not say which. */
  endedUnnamed: number
  /** Requests that got 401 then, in Combined Log Format: any of them may have had such a cookie. */
  endedUnknown: number
  /** Requests that got 429 then. */
  refusedThen: number
}
