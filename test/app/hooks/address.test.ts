/** Whose word on the client's address is believed. */
import t from 'tap'
import { clientAddress, countedAddress, createTrust } from '../../../src/app/hooks/address.ts'
import { retainedBytes } from '../../support/retained.ts'

t.test(
  'a load balancer is believed by its address or its block, in any spelling of it',
  async t => {
    const trusts = createTrust(['192.0.2.7', '10.0.0.0/8', '2001:db8:1::/48', '::1'])
    const believed = [
      '192.0.2.7',
      '10.255.0.1',
      '::ffff:10.1.2.3',
      '::ffff:0a01:0203',
      '2001:db8:1:2::3',
      '2001:0DB8:0001::1',
      '::1',
      '0:0:0:0:0:0:0:1',
      '::1%lo'
    ]
    const others = [
      '192.0.2.8',
      '11.0.0.1',
      '::ffff:11.1.2.3',
      '2001:db8:2::1',
      '::2',
      '',
      'unknown',
      '10.0.0.1:80',
      '10.0.0.1%lo',
      '10.0.0',
      '_hidden',
      'localhost',
      `10.0.0.1${' '.repeat(100)}`
    ]
    for (const address of believed) t.equal(trusts(address), true, address)
    for (const address of others) t.equal(trusts(address), false, address)
  }
)

t.test('an address is found once for each request, without the port that some append', async t => {
  let asked = 0
  const from = (ip: string | undefined) => ({
    get ip() {
      asked++
      return ip as string
    }
  })
  for (const [given, found] of [
    ['203.0.113.9', '203.0.113.9'],
    ['203.0.113.9:4711', '203.0.113.9'],
    ['2001:db8::1', '2001:db8::1'],
    ['[2001:db8::1]:4711', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['unknown', ''],
    ['999.0.0.1:80', ''],
    [undefined, '']
  ]) {
    asked = 0
    const request = from(given)
    t.equal(clientAddress(request), found)
    t.equal(clientAddress(request), found)
    t.equal(countedAddress(request), found === '2001:db8::1' ? '2001:db8::' : found || 'gone')
    t.equal(asked, 1)
  }
})

t.test('of X-Forwarded-For only the address is kept, not what stands before it', async t => {
  const trusts = createTrust(['10.0.0.0/8'])
  const count = 1000
  const others = 'x'.repeat(8000)
  const counted: string[] = []
  const retained = await retainedBytes(() => {
    for (let n = 0; n < count; n++) {
      const address =
        n % 2 === 0 ? `198.151.${100 + (n >> 6)}.${100 + (n & 63)}` : `2001:db8:1:${n}::1`
      // As it is read from the header: a part of its text.
      const ip = Buffer.from(`${others}, ${address}`).toString().slice(-address.length)
      trusts(ip)
      counted.push(countedAddress({ ip, ips: [] }))
    }
  })
  t.ok(retained < count * 2000, `${retained} bytes for ${count} addresses`)
  t.equal(counted[0], '198.151.100.100')
  t.equal(counted[1], '2001:db8:1:1::')
})

t.test('however many addresses come, a bounded number is kept', async t => {
  const retained = await retainedBytes(() => {
    for (let n = 0; n < 30_000; n++) {
      const ip = `2001:db8:${(n >> 8).toString(16)}:${(n & 255).toString(16)}::1`
      countedAddress({ ip, ips: [] })
    }
  })
  t.ok(retained < 2_500_000, `${retained} bytes`)
  t.equal(countedAddress({ ip: '2001:db8::2', ips: [] }), '2001:db8::')
})
