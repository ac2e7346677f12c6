/** JSON pointers (RFC 6901). */

/** The names and indexes of a pointer. */
export const stepsOf = (pointer: string): string[] => pointer.split('/').slice(1).map(unescapeStep)

/** Those of a pointer in a reference such as `#/$defs/NAME` (§6). */
export const stepsOfReference = (reference: string): string[] =>
  reference
    .split('/')
    .slice(1)
    .map(step => unescapeStep(decodeURIComponent(step)))

/** A name as it stands in a pointer (§3). */
export const escapeStep = (name: string): string => name.replaceAll('~', '~0').replaceAll('/', '~1')

function unescapeStep(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~')
}
