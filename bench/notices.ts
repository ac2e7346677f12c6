/** The bodies that travel: a back-end's list of notices, in two sizes. */

export const sizes = { small: 720, medium: 20_000 } as const

/** As many notices as fit. */
export function noticesOf(bytes: number): object {
  const list: object[] = []
  let used = JSON.stringify({ code: 0, data: { list, count: 10_000 } }).length
  for (let n = 1; ; n++) {
    const notice = {
      noticeId: n,
      subject: `Order ${n} has been paid`,
      body: `The customer has paid; ship it within ${(n % 5) + 1} days.`,
      createdAt: 1_795_239_000 + n,
      state: String(n % 3),
      ...(n % 2 === 0 && { kind: 'event' }),
      internal: `shard-${n % 7}`
    }
    used += JSON.stringify(notice).length + 1
    if (used > bytes) return { code: 0, data: { list, count: list.length } }
    list.push(notice)
  }
}
