/** Changes of the text of a users file: only the lines of the user change, all others stay. */
import { isDeepStrictEqual } from 'node:util'
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  LineCounter,
  type Pair,
  parseDocument,
  type Range,
  stringify,
  type YAMLMap
} from 'yaml'
import { CommandError } from './command.ts'

/** The members of a new user, in the order in which they are written. */
export interface NewUser {
  readonly password: string
  readonly id?: string
  readonly name?: string
  readonly roles?: readonly string[]
}

type Users = Readonly<Record<string, unknown>>

export class UsersText {
  readonly #text: string
  readonly #document: Document.Parsed
  readonly #users: Users

  /** @throws CommandError for a text that is not a users file */
  constructor(text: string) {
    this.#text = text
    this.#document = parse(text)
    const [error] = this.#document.errors
    if (error !== undefined) throw new CommandError(`Not valid YAML: ${error.message}`)
    const root: unknown = this.#document.toJS({ maxAliasCount: 50 })
    const users = typeof root === 'object' && root !== null ? (root as Users)['users'] : undefined
    if (root !== null && (typeof users !== 'object' || Array.isArray(users))) {
      throw new CommandError('The file has no mapping "users".')
    }
    this.#users = (users ?? {}) as Users
  }

  get names(): string[] {
    return Object.keys(this.#users)
  }

  /** The user name with this id. */
  ownerOf(id: string): string | undefined {
    return this.names.find(name => idOf(name, this.#users[name]) === id)
  }

  /** The text with one more user, as the last one. */
  add(name: string, user: NewUser): string {
    const users: Users = { ...this.#users, [name]: user }
    const { contents } = this.#document
    const map = isMap(contents) ? contents.get('users', true) : undefined
    const spliced =
      isMap(map) && map.flow !== true ? this.#append(map, { [name]: user }) : undefined
    return this.#verified(users, spliced === undefined ? [] : [spliced], document => {
      document.setIn(['users', name], document.createNode(user))
      const written = document.get('users')
      if (isMap(written)) written.flow = false
    })
  }

  /** The text with another hash for a user. */
  setPassword(name: string, password: string): string {
    const user = { ...(this.#users[name] as object), password }
    const users: Users = { ...this.#users, [name]: user }
    const node = this.#document.getIn(['users', name, 'password'], true)
    if (isScalar(node) && node.anchor !== undefined) {
      throw new CommandError(
        `The password of "${name}" has the anchor &${node.anchor}, which others may share: ` +
          'change the file by hand.'
      )
    }
    const range = isScalar(node) || isAlias(node) ? rangeOf(node) : undefined
    const spliced =
      range === undefined
        ? []
        : [password, JSON.stringify(password)].map(
            hash => this.#text.slice(0, range[0]) + hash + this.#text.slice(range[1])
          )
    return this.#verified(users, spliced, document =>
      document.setIn(['users', name, 'password'], password)
    )
  }

  /** Inserts a member after the last one of a block mapping, with the same indentation. */
  #append(map: YAMLMap, member: object): string | undefined {
    const [first, last] = [map.items[0], map.items.at(-1)] as [Pair?, Pair?]
    const start = rangeOf(first?.key)?.[0]
    const end = Math.max(rangeOf(last?.key)?.[1] ?? 0, rangeOf(last?.value)?.[1] ?? 0)
    if (start === undefined || end === 0) return undefined
    const lines = new LineCounter()
    parse(this.#text, lines)
    const indent = ' '.repeat(lines.linePos(start).col - 1)
    const eol = this.#text.includes('\r\n') ? '\r\n' : '\n'
    const next = this.#text[end - 1] === '\n' ? end : this.#text.indexOf('\n', end) + 1
    const at = next === 0 ? this.#text.length : next
    const before = this.#text.slice(0, at)
    const added = stringify(member, { lineWidth: 0 }).trimEnd().split('\n')
    const gap = before.endsWith('\n') ? '' : eol
    return before + gap + added.map(line => indent + line + eol).join('') + this.#text.slice(at)
  }

  /**
   * A text with these users and nothing else changed: the first spliced one that is right, or,
   * where none is, the whole document written anew with its comments.
   */
  #verified(
    users: Users,
    spliced: readonly string[],
    change: (document: Document.Parsed) => void
  ): string {
    const isRight = (text: string): boolean => {
      const document = parse(text)
      if (document.errors.length > 0) return false
      const before = (this.#document.toJS({ maxAliasCount: 50 }) ?? {}) as Users
      return isDeepStrictEqual(document.toJS({ maxAliasCount: 50 }), { ...before, users })
    }
    const right = spliced.find(isRight)
    if (right !== undefined) return right
    const document = parse(this.#text)
    change(document)
    const text = document.toString({ lineWidth: 0 })
    if (isRight(text)) return text
    throw new CommandError(
      'The file is written in a way that cannot be changed: change it by hand.'
    )
  }
}

function parse(text: string, lineCounter?: LineCounter): Document.Parsed {
  const options = { merge: true, prettyErrors: false }
  return parseDocument(text, lineCounter === undefined ? options : { ...options, lineCounter })
}

function rangeOf(node: unknown): Range | undefined {
  return (node as { readonly range?: Range | null } | null | undefined)?.range ?? undefined
}

/** As config reads it: the name, unless the user has an id of its own. */
function idOf(name: string, user: unknown): unknown {
  return (user as { readonly id?: unknown } | null | undefined)?.id ?? name
}
