/** The form of an error of the gateway's own. */

/**
 * Ant Design Pro's ways to show an error: 0 silent, 1 warning, 2 message, 3 notification, 9 go to
 * sign-in.
 */
type ShowType = 0 | 1 | 2 | 3 | 9

export interface ErrorKind {
  /** HTTP status (RFC 9110 §15). */
  readonly status: number
  readonly showType: ShowType
  readonly en: string
  readonly zh: string
}

export const kind = (status: number, showType: ShowType, en: string, zh: string): ErrorKind => ({
  status,
  showType,
  en,
  zh
})
