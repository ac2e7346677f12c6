/**
 * Connects ioredis to the primary that the Sentinels name, and disconnects it as soon as that has
 * moved.
 */
import { connect as connectPlain, type Socket } from 'node:net'
import { connect as connectSecured, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { AbstractConnector, type RedisOptions } from 'ioredis'
import { adopt } from '../observability/emitters.ts'
import { type Address, isSame, type Sentinels } from './redis-sentinels.ts'

type ConnectorClass = NonNullable<RedisOptions['Connector']>
type ReportError = (event: string, error: Error) => void

const disconnectWithinMs = 100
const reportEveryMs = 1000

/**
 * ioredis' own connector asks the Sentinels one after the other and believes the first, who may not
 * have heard of the failover yet. This one goes where the greatest epoch points, and breaks off at
 * once a connection whose server is the primary no more.
 */
export function primaryConnector(sentinels: Sentinels, tls?: ConnectionOptions): ConnectorClass {
  const sockets = new Map<Socket | TLSSocket, Address>()
  sentinels.onMoved(() => {
    for (const [socket, address] of sockets) {
      if (!isSame(address, sentinels.primary())) socket.destroy()
    }
  })

  return class PrimaryConnector extends AbstractConnector {
    #address: Address | undefined
    #stopWaiting = () => {}

    constructor() {
      super(disconnectWithinMs)
    }

    /** @param info what the server says of itself before it is used */
    override check({ role }: { readonly role?: string }): boolean {
      const isPrimary = role === undefined || role === 'master'
      return isPrimary && isSame(this.#address, sentinels.primary())
    }

    override async connect(report: ReportError): Promise<Socket | TLSSocket> {
      this.connecting = true
      const address = sentinels.primary() ?? (await this.#firstAddress(report))
      if (address === undefined || !this.connecting) throw new Error('Connection is closed.')
      const keepError = (error: Error) => {
        this.firstError = error
      }
      const socket =
        tls === undefined
          ? adopt(connectPlain(address), keepError)
          : adopt(connectSecured({ ...tls, ...address }), keepError)
      socket.on('close', () => sockets.delete(socket))
      sockets.set(socket, address)
      this.#address = address
      this.stream = socket
      return socket
    }

    override disconnect(): void {
      super.disconnect()
      this.#stopWaiting()
    }

    /** @returns undefined where the client was closed meanwhile */
    async #firstAddress(report: ReportError): Promise<Address | undefined> {
      const tell = () => report('error', new Error('no Sentinel answers'))
      const timer = setInterval(tell, reportEveryMs).unref()
      try {
        return await new Promise(resolve => {
          const end = sentinels.onMoved(() => this.#stopWaiting())
          this.#stopWaiting = () => {
            end()
            resolve(sentinels.primary())
          }
        })
      } finally {
        clearInterval(timer)
      }
    }
  }
}
