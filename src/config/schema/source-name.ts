/** `name` of a credential source, of any kind. */
import { maybe, name } from './primitives.ts'

export const sourceNameSchema = (otherwise: string) =>
  maybe(
    name(
      'The name of this source in sessions, logs and limits. It must be unique. ' +
        `Default: \`${otherwise}\`. Users belong to a source by its name, ` +
        'so a new name signs out the users of this source.'
    )
  )
