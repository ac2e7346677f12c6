/** Changes of the text of a users file: only the lines of the user change, all others stay. */
import { type Document, isAlias, isMap, isScalar } from 'yaml'
import { nameOfKey } from '../config/read/yaml-values.ts'
import { CommandError } from './command.ts'
import { addMember, parseYamlText, rangeOf, valueOf, verifiedText } from './yaml-text.ts'

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
    this.#document = parseYamlText(text)
    const [error] = this.#document.errors
    if (error !== undefined) throw new CommandError(`Not valid YAML: ${error.message}`)
    const root: unknown = valueOf(this.#document)
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
    return addMember(this.#text, ['users'], name, user)
  }

  /** The key as YAML reads it: a user may be a bare number, which is no text there. */
  #keyOf(name: string): unknown {
    const users = this.#document.get('users')
    const pairs = isMap(users) ? users.items : []
    const key = pairs.map(pair => pair.key).find(each => isScalar(each) && nameOfKey(each) === name)
    return isScalar(key) ? key.value : name
  }

  /** The text with another hash for a user. */
  setPassword(name: string, password: string): string {
    const path = ['users', this.#keyOf(name), 'password']
    const node = this.#document.getIn(path, true)
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
    return verifiedText(this.#text, spliced, document => document.setIn(path, password))
  }
}

/** As config reads it: the name, unless the user has an id of its own. */
function idOf(name: string, user: unknown): unknown {
  return (user as { readonly id?: unknown } | null | undefined)?.id ?? name
}
