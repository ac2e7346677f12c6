/** Messages and field errors in the error bodies of back-ends, by the format of each. */
import { stepsOf, isRecord, type Json, textOf, valueAt } from './values.ts'

/** Paths are names joined by dots. */
export interface ErrorFormat {
  /** Of the message; the first that leads to a text, or to a list that begins with one. */
  readonly message: readonly string[]
  readonly fields?: FieldErrors
}

interface FieldErrors {
  /** Of an object (name → texts) or a list; the first that exists. None: the whole body is one. */
  readonly at: readonly string[]
  /** Of the field's name, in each error of a list. */
  readonly name?: readonly string[]
  readonly text?: readonly string[]
  /** Whether names such as `UserName` become `userName`. */
  readonly camelCase?: boolean
}

/** Formats that back-ends share, by name. */
export const errorFormats = {
  /** DRF: `{detail}`, `{FIELD: [text]}`, `{non_field_errors: [text]}` or `[text]` */
  'drf': { message: ['detail'], fields: { at: [] } },
  'json-api': {
    message: ['errors.0.detail', 'errors.0.title'],
    fields: {
      at: ['errors'],
      name: ['source.pointer', 'source.parameter', 'source.header'],
      text: ['detail', 'title']
    }
  },
  'strapi': {
    message: ['error.message'],
    fields: { at: ['error.details.errors'], name: ['path'], text: ['message'] }
  },
  'directus': {
    message: ['errors.0.message'],
    fields: { at: ['errors'], name: ['extensions.field'], text: ['message'] }
  },
  /** RFC 9457, with the members for field errors that its examples and RFC 7807's have. */
  'problem': {
    message: ['detail', 'title'],
    fields: {
      at: ['errors', 'invalid-params', 'invalid_params'],
      name: ['pointer', 'name', 'field', 'path'],
      text: ['detail', 'reason', 'message']
    }
  },
  'laravel': { message: ['message'], fields: { at: ['errors'] } },
  'aspnet': { message: ['detail', 'title'], fields: { at: ['errors'], camelCase: true } }
} as const satisfies Readonly<Record<string, ErrorFormat>>

/** Members in which back-ends without a format of their own put a message. */
const usualMessages = ['errorMessage', 'message', 'msg', 'detail', 'error']

/** Bounds: everything here is the back-end's text, and goes to the browser. */
const bounds = { fields: 50, textsPerField: 10, text: 500, name: 100, depth: 6 }

type NamedText = readonly [name: string, text: string]

export function readErrorBody(body: Json, format?: keyof typeof errorFormats | ErrorFormat) {
  const { message: paths, fields }: ErrorFormat =
    typeof format === 'string' ? errorFormats[format] : (format ?? { message: [] })
  const texts = fields === undefined ? [] : namedTexts(body, fields)
  const general = texts.find(([name]) => name === '')
  const ofFields = texts.filter(([name]) => name !== '')
  const [firstField] = ofFields
  const message =
    textAt(body, paths) ??
    general?.[1] ??
    (firstField && `${firstField[0]}: ${firstField[1]}`) ??
    textAt(body, usualMessages)
  return {
    ...(message !== undefined && { message: message.slice(0, bounds.text) }),
    ...(firstField !== undefined && { fieldErrors: grouped(ofFields) })
  }
}

function grouped(texts: readonly NamedText[]): Record<string, string[]> {
  const groups = [...Map.groupBy(texts, ([name]) => name)].slice(0, bounds.fields)
  return Object.fromEntries(
    groups.map(([name, all]) => [
      name,
      all.slice(0, bounds.textsPerField).map(([, text]) => text.slice(0, bounds.text))
    ])
  )
}

/** The first text at one of the paths, or the first of a list of texts there. */
function textAt(value: Json, paths: readonly string[]): string | undefined {
  for (const path of paths) {
    const member = valueAt(value, path.split('.'))
    const text: Json = Array.isArray(member) ? member[0] : member
    if (typeof text === 'string' && text !== '') return text
  }
  return undefined
}

/** Names by which a page that merges the object into another would reach its prototype. */
const unsafe = /(?:^|\.)(?:__proto__|constructor|prototype)(?:\.|$)/

/** The names under which frameworks put errors that belong to no field, or to the outer one. */
const generalEnd = /(?:^|\.)(?:\$|non_field_errors|nonFieldErrors)?$/

function fieldName(rawName: string, camelCase: boolean): string {
  const name = rawName.slice(0, bounds.name).replace(/^\$\./, '').replace(generalEnd, '')
  return camelCase ? name.replaceAll(/(?:^|\.)\p{Lu}/gu, start => start.toLowerCase()) : name
}

/** The errors in their order; those that belong to no field are named ''. */
function namedTexts(body: Json, { at, name, text, camelCase = false }: FieldErrors): NamedText[] {
  const values = at.map(path => valueAt(body, path.split('.')))
  const errors = at.length === 0 ? body : values.find(each => each !== null)
  const isList = Array.isArray(errors)
  // A text beside the fields of a whole body is a code or a message, not a field's error.
  const takesTexts = at.length > 0 && !isList
  const found =
    isList && text !== undefined
      ? errors.map(each => [nameAt(each, name ?? []), textAt(each, text) ?? ''] as const)
      : textsIn(errors, [], takesTexts)
  return [...found]
    .map(([path, each]) => [fieldName(path, camelCase), each] as const)
    .filter(([field, each]) => each !== '' && !unsafe.test(field))
}

/** Nested names are as `items.1.price`. @param takesTexts also those outside of a list */
function* textsIn(
  holder: Json,
  path: readonly string[],
  takesTexts: boolean
): Generator<NamedText> {
  const isList = Array.isArray(holder)
  if ((!isList && !isRecord(holder)) || path.length > bounds.depth) return
  for (const [key, value] of Object.entries(holder)) {
    // Cut here: a long key would be copied for each of its values.
    const inner = [...path, key.slice(0, bounds.name)]
    if (typeof value !== 'string') yield* textsIn(value, inner, takesTexts)
    else if (isList) yield [path.join('.'), value]
    else if (takesTexts) yield [inner.join('.'), value]
  }
}

/** A text, a path as a list (`['address', 'city']`), or a JSON pointer, as names joined by dots. */
function nameAt(error: Json, paths: readonly string[]): string {
  for (const path of paths) {
    const value = valueAt(error, path.split('.'))
    if (Array.isArray(value)) return value.flatMap(step => textOf(step) ?? []).join('.')
    if (typeof value === 'string') return fromPointer(value)
  }
  return ''
}

/** `/data/attributes/title` (JSON:API) and `#/title` (RFC 9457) are `title`. */
function fromPointer(text: string): string {
  if (!/^[/#]/.test(text)) return text
  const inner = text.replace(/^\/data\/(?:attributes|relationships)(?=\/|$)/, '')
  return stepsOf(inner).join('.')
}
