/** Preloaded into a gateway of a test (`NODE_OPTIONS=--import=…`): SIGURG makes a process throw. */
process.on('SIGURG', () => {
  throw new TypeError('a fault made by a test')
})
