/** The lines of an access log by kind, counted for the notes of `limits simulate`. */
export interface LineCounts {
  lines: number
  /** Lines that are not about a request, such as the event of a sign-in. */
  others: number
  /** Neither JSON of the gateway nor Combined Log Format. */
  broken: number
  /** Requests that no limit counts: the console's files, and preflights. */
  unlimited: number
  /** Requests of a signed-in user whom the log does not name. */
  unattributed: number
  /** Of all, those in Combined Log Format. */
  combined: number
  /** Sign-ins refused for too many attempts, with unchecked passwords. They count as wrong. */
  undecidedSignIns: number
  /** Requests with the cookie of an ended session that the line does not name. */
  endedUnnamed: number
  /** Requests that got 401, in Combined Log Format: any of them may have had such a cookie. */
  endedUnknown: number
  /** Requests that got 429 when they were logged. */
  refusedThen: number
}
