import t from 'tap'
import { createMemoryStore } from '../../src/session/memory-store.ts'
import { sessionStoreContract } from '../suites/session-store.ts'

let now = 1_000_000
const store = createMemoryStore(() => now)
t.teardown(() => store.close())
sessionStoreContract(
  t,
  store,
  async ms => {
    now += ms
  },
  () => now
)
