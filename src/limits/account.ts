/** The name under which sign-ins of an account are counted. */

/**
 * Spellings of an account share a count: width, case, blanks and invisible characters are ignored.
 */
export function accountKey(typed: string): string {
  return typed
    .normalize('NFKD')
    .replace(/[\p{C}\p{Z}\p{M}]/gu, '')
    .toLowerCase()
    .slice(0, 255)
}
