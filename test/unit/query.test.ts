/** Queries as an upstream wants them. With requests: http/request-mapping.test.ts. */
import t from 'tap'
import { compileQuery } from '../../src/proxy/query.ts'

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
const renaming = compileQuery({ rename: { 'keyword': 'q', 'sort by': 'o&r' } })
const owned = compileQuery({ rename: { keyword: 'q' }, set: { tenant: 'a b' }, drop: ['_t'] })
const setting = compileQuery({
  rename: { keyword: 'q', tenant: 't' },
  set: { tenant: '5', Lang: 'de' }
})
const set = 'tenant=5&Lang=de'
const mark = encodeURIComponent(';')
const foreign = compileQuery({ set: { 'x租户': '5', 'a.b': '6' } })
const foreignSet = `${encodeURIComponent('x租户')}=5&a.b=6`
const others = `x=1&${encodeURIComponent('x租')}=2&=3&ab=4`
/** Spellings of `tenant` and `Lang` that one back-end or another reads as these. */
const spellings =
  'Tenant TENANT tenant[] tenant%5B0%5D tenant+ %20tenant lang ten%u0061nt ten%E2%80%8Bant ' +
  '%5B%74%65nant%5D [tenant] tenant%ff %c3tenant tenant%00 tenant%00x tenant%0a ten%FFant[0]'

type Rows = Readonly<Record<string, string>>
const tables: Record<string, readonly [map: (query: string) => string, rows: Rows]> = {
  'parameters get the upstream’s names and keep their values as the client wrote them': [
    renaming,
    {
      '?keyword=a%20b+c&x=1': '?q=a%20b+c&x=1',
      '?sort+by=%zz': '?o%26r=%zz',
      '?keyword': '?q',
      '?%6b%65%79word=1': '?q=1',
      '?b=.+%&%=a==&=&b': '?b=.+%&%=a==&=&b',
      '': '',
      '?': ''
    }
  ],
  'what the map writes is not taken from the client under that name': [
    owned,
    {
      '?q=evil&tenant=other&ten%61nt=other&_t=1&x': '?x&tenant=a%20b',
      '': '?tenant=a%20b'
    }
  ],
  'nor in a spelling that a back-end reads as what is set': [
    setting,
    {
      ...Object.fromEntries(spellings.split(' ').map(name => [`?a=1&${name}=6`, `?a=1&${set}`])),
      '?a=1;lang=6&keyword=x;TENANT=7': `?a=1${mark}lang=6&q=x${mark}TENANT=7&${set}`,
      '?tenant;a=1&lang;b': `?tenant${mark}a=1&lang${mark}b&${set}`,
      '?tenant=6': `?t=6&${set}`,
      '?a=1;ten%u0061nt=6': `?a=1${mark}ten%u0061nt=6&${set}`,
      '?a=1;b=2&tenants=7&x.tenant=8': `?a=1;b=2&tenants=7&x.tenant=8&${set}`
    }
  ],
  'a name that is set in other letters than ASCII leaves other names alone': [
    foreign,
    {
      [`?${others}`]: `?${others}&${foreignSet}`,
      [`?${encodeURIComponent('X租户')}[]=7&a_b=8&a+b=9`]: `?${foreignSet}`
    }
  ],
  'page and size become offset and limit': [
    toOffset,
    {
      '?current=3&pageSize=50&q=1': '?q=1&skip=100&limit=50',
      '?current=1': '?skip=0&limit=20',
      '?current=1000001&pageSize=1000': '?skip=1000000000&limit=1000',
      '?pageSize=5': '?limit=5',
      '?q=1': '?q=1',
      '?current=&pageSize=': '',
      '?skip=7&limit=9': ''
    }
  ]
}

for (const [title, [map, rows]] of Object.entries(tables)) {
  t.test(title, async t => {
    for (const [query, expected] of Object.entries(rows)) t.equal(map(query), expected, query)
  })
}

t.test('a page that is no number, too large, too small or there twice is refused', async t => {
  const bad = ['page=x', 'page=-1', 'page=0', 'page=1.5', 'page=1e3', 'size=0', 'page=99999999999']
  for (const query of [...bad, 'page=1&page=2', 'size=1&size=1', 'page=%zz', 'page=١']) {
    t.throws(() => toPage(`?${query}`), { code: 'request.malformed' }, query)
  }
})
