import fc from 'fast-check'
import t from 'tap'
import { compileQuery } from '../../src/proxy/query.ts'
import { seed } from '../support/seed.ts'

const toOffset = compileQuery({
  paging: {
    page: 'current',
    size: 'pageSize',
    firstPage: 1,
    defaultSize: 20,
    to: { offset: 'skip', size: 'limit', firstPage: 1 }
  }
})
const toPage = compileQuery({
  paging: {
    page: 'page',
    size: 'size',
    firstPage: 1,
    to: { page: 'pageNo', size: 'per_page', firstPage: 0 }
  }
})

t.test(
  'parameters get the upstream’s names and keep their values as the client wrote them',
  async t => {
    const map = compileQuery({ rename: { 'keyword': 'q', 'sort by': 'o&r' } })
    t.equal(map('?keyword=a%20b+c&x=1'), '?q=a%20b+c&x=1')
    t.equal(map('?sort+by=%zz'), '?o%26r=%zz')
    t.equal(map('?keyword'), '?q')
    t.equal(map('?%6b%65%79word=1'), '?q=1')
    t.equal(map(''), '')
    t.equal(map('?'), '')
  }
)

t.test('what the map writes is not taken from the client under that name', async t => {
  const map = compileQuery({ rename: { keyword: 'q' }, set: { tenant: 'a b' }, drop: ['_t'] })
  t.equal(map('?q=evil&tenant=other&ten%61nt=other&_t=1&x'), '?x&tenant=a%20b')
  t.equal(map(''), '?tenant=a%20b')
  t.equal(toOffset('?skip=7&limit=9'), '')
})

t.test(
  'what is set is not taken from the client in a spelling that a back-end reads as it',
  async t => {
    const map = compileQuery({
      rename: { keyword: 'q', tenant: 't' },
      set: { tenant: '5', Lang: 'de' }
    })
    const set = 'tenant=5&Lang=de'
    const mark = encodeURIComponent(';')
    for (const name of [
      'Tenant',
      'TENANT',
      'tenant[]',
      'tenant%5B0%5D',
      'tenant+',
      '%20tenant',
      'lang',
      'ten%u0061nt',
      'ten%E2%80%8Bant',
      '%5B%74%65nant%5D',
      '[tenant]',
      'tenant%ff',
      '%c3tenant',
      'tenant%00',
      'tenant%00x',
      'tenant%0a',
      'ten%FFant[0]'
    ]) {
      t.equal(map(`?a=1&${name}=6`), `?a=1&${set}`, name)
    }
    t.equal(map('?a=1;lang=6&keyword=x;TENANT=7'), `?a=1${mark}lang=6&q=x${mark}TENANT=7&${set}`)
    t.equal(map('?tenant;a=1&lang;b'), `?tenant${mark}a=1&lang${mark}b&${set}`)
    t.equal(map('?tenant=6'), `?t=6&${set}`, 'what is renamed is renamed')
    t.equal(map('?a=1;ten%u0061nt=6'), `?a=1${mark}ten%u0061nt=6&${set}`)
    t.equal(map('?a=1;b=2&tenants=7&x.tenant=8'), `?a=1;b=2&tenants=7&x.tenant=8&${set}`)
  }
)

t.test('a name that is set in other letters than ASCII leaves other names alone', async t => {
  const map = compileQuery({ set: { 'x租户': '5', 'a.b': '6' } })
  const set = `${encodeURIComponent('x租户')}=5&a.b=6`
  const others = `x=1&${encodeURIComponent('x租')}=2&=3&ab=4`
  t.equal(map(`?${others}`), `?${others}&${set}`)
  t.equal(map(`?${encodeURIComponent('X租户')}[]=7&a_b=8&a+b=9`), `?${set}`)
})

t.test('page and size become offset and limit', async t => {
  t.equal(toOffset('?current=3&pageSize=50&q=1'), '?q=1&skip=100&limit=50')
  t.equal(toOffset('?current=1'), '?skip=0&limit=20')
  t.equal(toOffset('?pageSize=5'), '?limit=5')
  t.equal(toOffset('?q=1'), '?q=1')
  t.equal(toOffset('?current=&pageSize='), '')
})

t.test('a page number counts from the upstream’s first page', async t => {
  t.equal(toPage('?page=1&size=10'), '?pageNo=0&per_page=10')
  t.equal(toPage('?page=7'), '?pageNo=6')
})

t.test('a page that is no number, too large, too small or there twice is refused', async t => {
  const bad = ['page=x', 'page=-1', 'page=0', 'page=1.5', 'page=1e3', 'size=0', 'page=99999999999']
  for (const query of [...bad, 'page=1&page=2', 'size=1&size=1', 'page=%zz', 'page=١']) {
    t.throws(() => toPage(`?${query}`), { code: 'request.malformed' }, query)
  }
})

t.test('the offset is exact for every page and size', async () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 1e6 }),
      fc.integer({ min: 1, max: 1000 }),
      (page, size) => {
        const query = new URLSearchParams(toOffset(`?current=${page}&pageSize=${size}`))
        return (
          query.get('skip') === String((page - 1) * size) && query.get('limit') === String(size)
        )
      }
    ),
    { seed }
  )
})

t.test('parameters that no key names pass in their order, byte for byte', async () => {
  const map = compileQuery({ rename: { never: 'ever' } })
  const pair = fc.stringMatching(/^[a-d%=.+]{1,8}$/)
  fc.assert(
    fc.property(fc.array(pair, { minLength: 1, maxLength: 6 }), pairs => {
      return map(`?${pairs.join('&')}`) === `?${pairs.join('&')}`
    }),
    { seed }
  )
})
