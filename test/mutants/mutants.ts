/**
 * Faults made by hand, each with the tests that have to fail because of it. Every one of them has
 * been in the code once, or was survived by the tests of its time.
 */

export interface Change {
  readonly file: string
  /** Stands in the file exactly once. */
  readonly find: string
  readonly replacement: string
}

export interface Mutant extends Change {
  /** What is wrong with the gateway while this mutant is in it. */
  readonly breaks: string
  /** Where two places each prevent the fault alone: the other one, in another file. */
  readonly also?: Change
  /** Each of them has to fail. */
  readonly tests: readonly string[]
}

const origin: readonly Mutant[] = [
  {
    breaks: 'A Referer of https://console.example.evil.test passes for https://console.example.',
    file: 'src/app/hooks/same-origin.ts',
    find: 'referer.startsWith(`${allowed}/`)',
    replacement: 'referer.startsWith(allowed)',
    tests: ['test/app/hooks/same-origin.test.ts']
  },
  {
    breaks: 'An http page of our host may call us by https.',
    file: 'src/app/hooks/same-origin.ts',
    find: "(protocol === 'http:' && request.protocol === 'http')",
    replacement: "protocol === 'http:'",
    tests: ['test/app/hooks/same-origin.test.ts']
  }
]

const sessions: readonly Mutant[] = [
  {
    breaks: 'What a client sends under a name of the console’s own token reaches the back-end.',
    file: 'src/proxy/passing-headers.ts',
    find: '(headers.has(name) ? none : all)',
    replacement: 'all',
    tests: ['test/wire/console-tokens.test.ts']
  },
  {
    breaks: 'The console’s own token passes in the query of a part.',
    file: 'src/app/compile-parts.ts',
    find: 'tokenNames.query?.strip(sent) ?? sent',
    replacement: 'sent',
    tests: ['test/wire/console-tokens.test.ts']
  },
  {
    breaks: 'A timer that refreshes keeps a forgotten tab signed in.',
    file: 'src/session/memory-store.ts',
    find: 'if (entry?.isUsed !== true) return false',
    replacement: 'if (entry === undefined) return false',
    tests: ['test/session/refresh.test.ts', 'test/session/memory-store.test.ts']
  },
  {
    breaks: 'The same, with Redis.',
    file: 'src/session/redis-scripts.ts',
    find: "if not quiet and redis.call('PTTL', KEYS[2]) >= left then return 0 end",
    replacement: '',
    tests: ['test/redis/refresh.test.ts', 'test/session/redis-store.test.ts']
  },
  {
    breaks: 'A replica tells of less time than a session has that is used elsewhere.',
    file: 'src/session/idle-clock.ts',
    find: 'return isQuiet && now() + session.idleMs - idleEnd >= touchEveryMs(session)',
    replacement: 'return isQuiet && now() >= idleEnd',
    tests: ['test/session/idle-clock.test.ts']
  },
  {
    breaks: 'The same, where a request tells of the time and does not use the session.',
    file: 'src/app/hooks/session.ts',
    find: '(!sessions.mayBeLater(live) || isUse(request))',
    replacement: 'true',
    tests: ['test/redis/quiet-sessions.test.ts']
  },
  {
    breaks: 'A session that was used too late lives on in the cache.',
    file: 'src/session/idle-clock.ts',
    find: 'if (isTouched && live.isQuiet)',
    replacement: 'if (live.isQuiet)',
    tests: ['test/session/idle-clock.test.ts']
  },
  {
    breaks: 'The record of a session in use is gone before its clock.',
    file: 'src/session/redis-scripts.ts',
    find: "if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[1]) then ${outliveClock} end",
    replacement: '',
    tests: ['test/session/redis-store.test.ts']
  },
  {
    breaks: 'Use right after a refresh at another replica is not written.',
    file: 'src/session/session.ts',
    find: 'const onChanged = (key: string) => touchedAt.delete(key)',
    replacement: 'const onChanged = () => {}',
    tests: ['test/redis/refresh.test.ts']
  },
  {
    breaks: 'A renewed certificate is not taken over.',
    file: 'src/process/server/listeners.ts',
    find: 'setCertificate(server, serverTls)',
    replacement: '',
    tests: ['test/process/server/listeners.test.ts']
  },
  {
    breaks: 'A note that leads to the session of another user lists it.',
    file: 'src/session/lists.ts',
    find: "if (!('live' in evaluation) || identityKey(evaluation.live.session) !== user) return",
    replacement: "if (!('live' in evaluation)) return",
    tests: ['test/session/session.test.ts']
  },
  {
    breaks: 'A user closes the session of another one that stands in the list by mistake.',
    file: 'src/session/ending.ts',
    find: "record !== undefined && 'live' in record && identityKey(record.live.session) !== user",
    replacement: 'false && record',
    tests: ['test/session/session.test.ts']
  },
  {
    breaks: 'A session that memory takes for over is refused without asking the store.',
    file: 'src/session/lookup.ts',
    find: "if ('live' in evaluation) return await settle(record, evaluation)",
    replacement: 'return await settle(record, evaluation as never)',
    tests: ['test/session/session.test.ts']
  },
  {
    breaks: 'A cookie with the signature of an older secret is signed anew, and so cleared.',
    file: 'src/app/hooks/signer.ts',
    find: 'signatures.set(kept.value, ownText(signed))',
    replacement: '',
    tests: ['test/app/hooks/signer.test.ts']
  },
  {
    breaks: 'A token that another replica has renewed is renewed again under the lock.',
    file: 'src/login/token-refresh.ts',
    find: 'if (this.#isRenewed(current)) return current\n      const',
    replacement: 'const',
    tests: ['test/session/renewals.test.ts']
  },
  {
    breaks: 'A user who is removed from the users file stays signed in.',
    file: 'src/login/file-users.ts',
    find: "if (user === undefined || user.disabled) return 'refused'",
    replacement: "if (user === undefined || user.disabled) return 'unchanged'",
    tests: ['test/process/reload/user-review.test.ts']
  },
  {
    breaks: 'A reload leaves the sessions of removed users in the store.',
    file: 'src/session/review-writer.ts',
    find: "return (await endKeys([key], 'revoked', { revoker })) === 1 ? 'closed' : undefined",
    replacement: 'return undefined',
    tests: ['test/process/reload/user-review.test.ts']
  },
  {
    breaks: 'A record that was read before a change stays in the cache after it.',
    file: 'src/session/session-cache.ts',
    find: 'value !== undefined && !pending.isOutdated && this.#isFresh()',
    replacement: 'value !== undefined && this.#isFresh()',
    tests: ['test/session/session-cache.test.ts']
  },
  {
    breaks: 'A record that was read during a silence of the store stays in the cache after it.',
    file: 'src/session/session-cache.ts',
    find: 'value !== undefined && !pending.isOutdated && this.#isFresh()',
    replacement: 'value !== undefined && !pending.isOutdated',
    tests: ['test/session/session-cache.test.ts']
  },
  {
    breaks: 'An epoch that was asked before all sessions were closed is kept.',
    file: 'src/session/session-cache.ts',
    find: 'this.#isFresh() && changes === this.#epochChanges',
    replacement: 'this.#isFresh()',
    tests: ['test/session/session-cache.test.ts']
  },
  {
    breaks: 'A user is told that the session was extended where the store did not do it.',
    file: 'src/session/idle-clock.ts',
    find: 'await touch(live)\n',
    replacement: 'void touch(live)\n',
    tests: ['test/session/idle-clock.test.ts']
  },
  {
    breaks: 'A replica with the users file before the last but one takes it for the newest.',
    file: 'src/session/redis-scripts.ts',
    find: "'-inf', last - 99)",
    replacement: "'-inf', last - 1)",
    tests: ['test/session/redis-store.test.ts']
  },
  {
    breaks: 'The notes of a user stay in Redis for ever.',
    file: 'src/session/redis-scripts.ts',
    find: "redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', last))",
    replacement: '',
    tests: ['test/session/redis-store.test.ts']
  },
  {
    breaks: 'A revocation is acknowledged without waiting for the replicas of Redis.',
    file: 'src/services/redis-replicated.ts',
    find: 'replicas > 0 ? primary.wait(replicas, waitMs) : 0,',
    replacement: 'replicas,',
    tests: ['test/redis/replicated.test.ts']
  }
]

const limits: readonly Mutant[] = [
  {
    breaks: 'Each replica keeps the part of a limit that is meant for all of them together.',
    file: 'src/limits/counting/leases.ts',
    find: 'share / replicasOf(rule, this.#replicas)',
    replacement: 'share',
    tests: ['test/limits/counting/tally.test.ts']
  },
  {
    breaks: 'What was let pass is forgotten where the shared counters fail.',
    file: 'src/limits/counting/leases.ts',
    find: 'if (lease !== undefined) lease.unreported += unreported',
    replacement: '',
    tests: ['test/limits/counting/tally.test.ts']
  },
  {
    breaks: 'What was let pass is never told once its lease is over.',
    file: 'src/limits/counting/leases.ts',
    find: 'return { rule, key, unreported, unused }',
    replacement: 'return { rule, key, unreported: 0, unused }',
    tests: ['test/limits/counting/tally.test.ts']
  },
  {
    breaks: 'While Redis is away a process forgets what it let pass and had not told yet.',
    file: 'src/limits/counting/fallback-tally.ts',
    find: '({ rule: partOf(rule), key, unreported })',
    replacement: '({ rule: partOf(rule), key, unreported: 0 * unreported })',
    tests: ['test/limits/counting/tally.test.ts']
  },
  {
    breaks: 'While Redis is away each process allows the whole limit.',
    file: 'src/limits/counting/fallback-tally.ts',
    find: 'Math.floor(whole / count)',
    replacement: 'whole',
    tests: ['test/limits/counting/tally.test.ts']
  },
  {
    breaks: 'What Redis could not be told is forgotten at the first failure.',
    file: 'src/limits/counting/with-fallback.ts',
    find: 'due.unshift(...failed)',
    replacement: '',
    tests: ['test/limits/counting/with-fallback.test.ts']
  },
  {
    breaks: 'While a limit that only reports is exceeded, the others of its requests do not count.',
    file: 'src/limits/counting/leases.ts',
    find: 'if (waitMs > 0 && rule.enforced) {',
    replacement: 'if (waitMs > 0) {',
    tests: ['test/limits/counting/shared-leases.test.ts']
  },
  {
    breaks: 'The last request passes beside a part of the limit that another process uses.',
    file: 'src/limits/counting/shared-leases.ts',
    find: 'lease.remaining - lent <= asking',
    replacement: 'lease.remaining - lent < asking',
    tests: ['test/limits/counting/shared-leases.test.ts']
  },
  {
    breaks: 'A process gives back more than was lent to it.',
    file: 'src/limits/counting/shared-leases.ts',
    find: 'Math.min(unused, Math.max(0, lent - unreported))',
    replacement: 'unused',
    tests: ['test/limits/counting/shared-leases.test.ts']
  },
  {
    breaks: 'A request whose counting is under way is counted elsewhere too.',
    file: 'src/process/cluster/lease-relay.ts',
    find: 'asked === undefined || asked.isUnderWay',
    replacement: 'asked === undefined',
    tests: ['test/process/cluster/lease-messages.test.ts']
  },
  {
    breaks: 'A request that a worker has counted elsewhere meanwhile is counted again.',
    file: 'src/process/cluster/lease-lender.ts',
    find: 'const isTooLate = machineTicks() - sentAt >= askMs',
    replacement: 'const isTooLate = false',
    tests: ['test/process/cluster/lease-lender.test.ts']
  }
]

const upstreams: readonly Mutant[] = [
  {
    breaks: 'Each safe request to a back-end in trouble is sent twice.',
    file: 'src/proxy/retry-budget.ts',
    find: 'this.#left -= 1',
    replacement: '',
    tests: ['test/wire/upstream-faults.test.ts']
  },
  {
    breaks: 'A change whose connection broke is sent to a second back-end.',
    file: 'src/proxy/call.ts',
    find: "return method === 'GET' || method === 'HEAD' || method === 'OPTIONS'",
    replacement: 'return true',
    tests: ['test/proxy/retries.test.ts']
  },
  {
    breaks: 'A stream goes on after its session has ended.',
    file: 'src/app/endpoints/streamed-response.ts',
    find: 'if (raw.closed || raw.writableEnded || body.destroyed) return',
    replacement: 'return',
    tests: ['test/wire/streams.test.ts']
  },
  {
    breaks: 'Each generation of config opens connections of its own.',
    file: 'src/proxy/pools.ts',
    find: 'held.get(key) ?? open(',
    replacement: 'open(',
    tests: ['test/proxy/pools.test.ts']
  },
  {
    breaks: 'The message of a back-end goes on at any length.',
    file: 'src/json/error-body.ts',
    find: 'message.slice(0, bounds.text)',
    replacement: 'message',
    tests: ['test/json/error-body.test.ts', 'test/proxy/failures.test.ts']
  },
  {
    breaks: 'An upload whose client leaves while no upstream takes it ends the process.',
    file: 'src/proxy/request-body.ts',
    find: 'const relay = adopt(\n    new Readable({',
    replacement: 'const relay = ((bare: Readable) => bare)(\n    new Readable({',
    also: {
      file: 'src/app/endpoints/http-proxy-adapter.ts',
      find: 'if (whole instanceof Readable) whole.destroy()',
      replacement: ''
    },
    tests: ['test/wire/abandoned-uploads.test.ts']
  },
  {
    breaks: 'Nothing that is adopted has an error listener.',
    file: 'src/observability/emitters.ts',
    find: "emitter.on('error' as never, onError as never)",
    replacement: '',
    tests: ['test/observability/emitters.test.ts']
  }
]

const texts: readonly Mutant[] = [
  {
    breaks: 'A long run of digits is walked again from each of its places.',
    file: 'src/json/digits.ts',
    find: 'at = end\n',
    replacement: '\n',
    tests: ['test/json/body.test.ts']
  },
  {
    breaks: 'A config file that is still being written is taken by half.',
    file: 'src/process/reload/watcher.ts',
    find: 'pending = now\n    clearTimeout(settling)',
    replacement: 'pending = now',
    tests: ['test/process/reload/watcher.test.ts']
  },
  {
    breaks: 'A config file that changed since it was last looked at is taken as it is.',
    file: 'src/process/reload/watcher.ts',
    find: 'if (now !== pending) return look()',
    replacement: '',
    tests: ['test/process/reload/watcher.test.ts']
  }
]

const load: readonly Mutant[] = [
  {
    breaks: 'Where one address sends too much, all others are refused too.',
    file: 'src/app/overload/admission.ts',
    find: 'load.modest >= rank * load.capacity(bounds)',
    replacement: 'load.total >= rank * load.capacity(bounds)',
    tests: ['test/app/overload/admission.test.ts']
  },
  {
    breaks: 'Each late turn after the first signs of overload halves the capacity again.',
    file: 'src/app/overload/load.ts',
    find: 'this.#lateSince = undefined\n    this.#capacity',
    replacement: 'this.#capacity',
    tests: ['test/app/overload/load.test.ts']
  }
]

const operators: readonly Mutant[] = [
  {
    breaks: 'What is remembered of a request is read from the bytes of others.',
    file: 'src/observability/trail-ring.ts',
    find: 'this.#dropFrom(start, this.#end)\n',
    replacement: '\n',
    tests: ['test/observability/trail-ring.test.ts']
  },
  {
    breaks: 'A request with long texts in Chinese is answered with 500, since it has no room.',
    file: 'src/observability/trail-bytes.ts',
    find: 'textCount * 3 * maxTextLength',
    replacement: 'textCount * maxTextLength',
    tests: ['test/observability/trail-bytes.test.ts']
  },
  {
    breaks: 'A ledger that is written day and night never begins a new file.',
    file: 'src/observability/audit/chain.ts',
    find: 'this.#size < maxFileBytes && now() - this.#since < maxFileMs',
    replacement: 'this.#size < maxFileBytes',
    tests: ['test/observability/audit/ledger.test.ts']
  },
  {
    breaks: 'Acts are written into a file of the ledger that was deleted.',
    file: 'src/observability/audit/ledger.ts',
    find: 'if (await chain.leaveDeletedFile()) {',
    replacement: 'if (false) {',
    tests: ['test/observability/audit/ledger.test.ts']
  },
  {
    breaks: 'A ledger that was cut is not found out where Redis was away at the start.',
    file: 'src/observability/audit/ledger.ts',
    find: 'if (!this.#isHeadChecked) await this.#checkHead(chain)',
    replacement: '',
    tests: ['test/observability/audit/ledger.test.ts']
  },
  {
    breaks: 'A ledger whose lines were written anew is not found out.',
    file: 'src/observability/audit/ledger.ts',
    find: 'head.seq <= opened.seq && (mac === undefined || mac === head.mac)',
    replacement: 'head.seq <= opened.seq',
    tests: ['test/observability/audit/verify.test.ts']
  },
  {
    breaks: 'A replica answers no question any more after the first 64.',
    file: 'src/services/replica-bus.ts',
    find: 'this.#answering--\n',
    replacement: '\n',
    tests: ['test/services/replica-bus.test.ts']
  },
  {
    breaks: 'After a failed restart two processes take requests.',
    file: 'src/process/restart/restart.ts',
    find: 'await successor?.kill()',
    replacement: '',
    tests: ['test/process/restart/restart.test.ts']
  },
  {
    breaks: 'After a failed restart the sessions of this process are gone.',
    file: 'src/process/restart/restart.ts',
    find: 'handover.resume()\n',
    replacement: '\n',
    tests: ['test/process/restart/restart.test.ts']
  }
]

export const mutants: readonly Mutant[] = [
  ...origin,
  ...sessions,
  ...limits,
  ...upstreams,
  ...texts,
  ...load,
  ...operators
]
