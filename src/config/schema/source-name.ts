/** The `name` that every kind of credential source may have. */
import { Type } from 'typebox'
import { name } from './primitives.ts'

export const sourceNameSchema = (otherwise: string) =>
  Type.Optional(
    name({
      description:
        'The name of this source in sessions, logs and limits; ' +
        `\`${otherwise}\` without it. ` +
        'No two sources share one. A user is an id of a source, so another name signs its users out.'
    })
  )
