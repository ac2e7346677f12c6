/** Messages and field errors in the error bodies of back-ends, by the format of each. */
import { unescapeStep } from './pointer.ts'
import { isRecord, type Json, put, textOf, valueAt } from './values.ts'

/** Paths are names joined by dots. */
interface ErrorFormat {
  /** Of the message; the first that leads to a text, or to a list that begins with one. */
  readonly message: readonly string[]
  readonly fields?: FieldErrors | undefined
}

interface FieldErrors {
  /**
   * Of an object (name → texts) or a list of errors; the first that exists. None: the whole body is
   * such an object.
   */
  readonly at: readonly string[]
  /** Of the field's name, in each error of a list. */
  readonly name?: readonly string[] | undefined
  /** Of the text, in each error of a list. */
  readonly text?: readonly string[] | undefined
  /** Whether names such as `UserName` become `userName`. */
  readonly camelCase?: boolean | undefined
}

/** Formats that back-ends share, by name. */
export const errorFormats = {
  /** DRF: `{detail}`, `{FIELD: [text]}`, `{non_field_errors: [text]}` or `[text]` */
  'drf': { message: ['detail', 'non_field_errors', '0'], fields: { at: [] } },
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
const usualMessages = ['errorMessage', 'message', 'msg', 'error']

/** Bounds: everything here is the back-end's text, and goes to the browser. */
const bounds = { fields: 50, textsPerField: 10, text: 500, name: 100, depth: 6, values: 2000 }

interface ErrorBody {
  readonly message?: string
  readonly fieldErrors?: Readonly<Record<string, readonly string[]>>
}

/** @param format a name of {@link errorFormats}, or paths; without it only the message is read */
export function readErrorBody(
  body: Json,
  format?: keyof typeof errorFormats | ErrorFormat
): ErrorBody {
  const { message: paths, fields }: ErrorFormat =
    typeof format === 'string' ? errorFormats[format] : (format ?? { message: [] })
  const collected = fields === undefined ? new Collected(false) : collect(body, fields)
  const [firstField] = Object.entries(collected.fieldErrors)
  const message =
    textAt(body, paths) ??
    collected.general ??
    (firstField && `${firstField[0]}: ${firstField[1][0]}`) ??
    textAt(body, usualMessages)
  return {
    ...(message !== undefined && { message: message.slice(0, bounds.text) }),
    ...(firstField !== undefined && { fieldErrors: collected.fieldErrors })
  }
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

function collect(body: Json, { at, name = [], text = [], camelCase = false }: FieldErrors) {
  const collected = new Collected(camelCase)
  const values = at.map(path => valueAt(body, path.split('.')))
  const errors = at.length === 0 ? body : values.find(each => each !== null)
  if (Array.isArray(errors) && at.length > 0) {
    for (const error of errors.slice(0, bounds.values)) {
      const message = textAt(error, text)
      if (message !== undefined) collected.add(nameAt(error, name), message)
    }
  } else if (isRecord(errors)) {
    // A text beside the fields of a whole body is a code or a message, not a field's error.
    collected.addMembers(errors, '', { depth: 0, takesTexts: at.length > 0 })
  }
  return collected
}

/** A text, a path as a list (`['address', 'city']`), or a JSON pointer, as names joined by dots. */
function nameAt(error: Json, paths: readonly string[]): string {
  for (const path of paths) {
    const value = valueAt(error, path.split('.'))
    if (Array.isArray(value)) {
      const steps = value.slice(0, bounds.depth).map(textOf)
      return steps.filter(step => step !== undefined).join('.')
    }
    if (typeof value === 'string') return fromPointer(value.slice(0, 4 * bounds.name))
  }
  return ''
}

/** `/data/attributes/title` (JSON:API) and `#/title` (RFC 9457) are `title`; `$.title` likewise. */
function fromPointer(text: string): string {
  if (!text.startsWith('/') && !text.startsWith('#')) return text
  const steps = text
    .replace(/^#?\/?/, '')
    .split('/')
    .map(unescapeStep)
  const isResource =
    steps[0] === 'data' && (steps[1] === 'attributes' || steps[1] === 'relationships')
  return steps.slice(isResource ? 2 : 0).join('.')
}

/** Names by which a page that merges the object into another would reach its prototype. */
const unsafeNames = new Set(['__proto__', 'constructor', 'prototype'])

/** The keys under which frameworks put errors that belong to no field. */
const generalNames = new Set(['', '$', 'non_field_errors', 'nonFieldErrors'])

interface Depth {
  readonly depth: number
  readonly takesTexts: boolean
}

class Collected {
  readonly fieldErrors: Record<string, string[]> = {}
  /** The first text that belongs to no field. */
  general: string | undefined
  readonly #camelCase: boolean
  #fields = 0
  #values = 0

  constructor(camelCase: boolean) {
    this.#camelCase = camelCase
  }

  add(rawName: string, text: string): void {
    if (text === '') return
    const name = this.#nameOf(rawName)
    if (generalNames.has(name)) {
      this.general ??= text
      return
    }
    if (name.split('.').some(step => unsafeNames.has(step))) return
    if (!Object.hasOwn(this.fieldErrors, name)) {
      if (++this.#fields > bounds.fields) return
      put(this.fieldErrors, name, [])
    }
    const texts = this.fieldErrors[name] as string[]
    if (texts.length < bounds.textsPerField) texts.push(text.slice(0, bounds.text))
  }

  /** Nested objects and lists have names such as `items.1.price`. */
  addMembers(members: Readonly<Record<string, Json>>, prefix: string, depth: Depth): void {
    for (const key of Object.keys(members)) {
      const isGeneral = prefix !== '' && generalNames.has(key)
      // Cut here: a long key would be copied for each of its values.
      const step = key.slice(0, bounds.name)
      const name = prefix === '' ? step : `${prefix}.${step}`
      this.#addValue(isGeneral ? prefix : name, members[key], depth)
    }
  }

  #addValue(name: string, value: Json, { depth, takesTexts }: Depth): void {
    if (++this.#values > bounds.values || depth > bounds.depth) return
    if (typeof value === 'string') {
      if (takesTexts) this.add(name, value)
    } else if (Array.isArray(value)) {
      for (const [index, item] of value.slice(0, bounds.values).entries()) {
        if (typeof item === 'string') this.add(name, item)
        else this.#addValue(`${name}.${index}`, item, { depth: depth + 1, takesTexts })
      }
    } else if (isRecord(value)) {
      this.addMembers(value, name, { depth: depth + 1, takesTexts })
    }
  }

  #nameOf(rawName: string): string {
    const name = rawName.slice(0, bounds.name).replace(/^\$\./, '')
    if (!this.#camelCase) return name
    return name
      .split('.')
      .map(step => step.charAt(0).toLowerCase() + step.slice(1))
      .join('.')
  }
}
