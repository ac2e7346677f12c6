/** A doubly linked list: to leave it costs the same at each place, and nothing stays behind. */

/** The place of a value in its list. */
export interface Link<T> {
  value: T
  before: Link<T> | undefined
  behind: Link<T> | undefined
}

export class LinkedList<T> {
  #first: Link<T> | undefined
  #last: Link<T> | undefined

  get first(): T | undefined {
    return this.#first?.value
  }

  get last(): T | undefined {
    return this.#last?.value
  }

  /** Adds it as the last one. */
  add(value: T): Link<T> {
    const link: Link<T> = { value, before: this.#last, behind: undefined }
    if (this.#last === undefined) this.#first = link
    else this.#last.behind = link
    this.#last = link
    return link
  }

  /** @param link of this list, once */
  remove(link: Link<T>): void {
    const { before, behind } = link
    if (before === undefined) this.#first = behind
    else before.behind = behind
    if (behind === undefined) this.#last = before
    else behind.before = before
    link.before = link.behind = undefined
  }
}
