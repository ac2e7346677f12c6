/**
 * The listening sockets that the primary holds for its workers: it accepts connections, and gives
 * them to workers in turn. A successor of the primary inherits them.
 */
import { channel } from 'node:diagnostics_channel'
import { Server } from 'node:net'
import type { Config } from '../../config/schema/config.ts'
import {
  type ListenerFd,
  type ListenerFds,
  type ListenerName,
  listenersOf
} from '../server/listeners.ts'

interface Handle {
  /** Negative once it is closed. */
  readonly fd: number
  readonly close: () => void
}

/** Published with each server that has begun to listen. */
const opened = channel('tracing:net.server.listen:asyncEnd')

export class HeldListeners {
  readonly #config: Config
  readonly #handles = new Map<ListenerName, Handle>()
  #inherited: ListenerFds = {}

  constructor(config: Config) {
    this.#config = config
    opened.subscribe(this.#onOpened)
  }

  /** The descriptors that workers listen on; addresses without one are opened by their name. */
  fds(): ListenerFds {
    // All workers may have ended, and their listeners with them: the number may be another's now.
    const open = Object.entries(this.#inherited).filter(([name]) => {
      const handle = this.#handles.get(name as ListenerName)
      return handle === undefined || handle.fd >= 0
    })
    return Object.fromEntries(open)
  }

  inherit(fds: ListenerFds): void {
    this.#inherited = fds
  }

  descriptors(): ListenerFd[] {
    return listenersOf(this.#config).map(([name, listen]) => ({
      name,
      listen,
      fd: this.#handles.get(name)?.fd ?? -1
    }))
  }

  /** Accepts no more connections; those that were accepted still go to workers. */
  close(): void {
    opened.unsubscribe(this.#onOpened)
    for (const handle of this.#handles.values()) handle.close()
  }

  /**
   * Node's cluster shows its servers nowhere else. They are the only ones in the primary that speak
   * no HTTP. Workers open the redirect first.
   */
  readonly #onOpened = (message: unknown): void => {
    const { server } = message as { readonly server: Server }
    if (Object.getPrototypeOf(server) !== Server.prototype) return
    const { _handle: handle } = server as unknown as { readonly _handle: Handle }
    const isOpen = ([name]: readonly [ListenerName, string]) =>
      (this.#handles.get(name)?.fd ?? -1) >= 0
    const [name] = listenersOf(this.#config).findLast(listener => !isOpen(listener)) ?? []
    if (name === undefined) return
    // Opened again by its name: the inherited descriptor was closed with the former handle.
    if (this.#handles.has(name)) this.#inherited = { ...this.#inherited, [name]: undefined }
    this.#handles.set(name, handle)
  }
}
