/**
 * Preloaded into a gateway of a test (`NODE_OPTIONS=--import=…`): SIGURG makes a process throw,
 * SIGWINCH makes a socket fail that has no `error` listener.
 */
import { Socket } from 'node:net'

process.on('SIGURG', () => {
  throw new TypeError('a fault made by a test')
})

process.on('SIGWINCH', () => {
  new Socket().destroy(
    Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', errno: -104 })
  )
})
