import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { type CountryResponse, Reader } from 'mmdb-lib'
import { SettingRefused } from '../config.ts'
import { plainAddress } from '../http/network.ts'

/** Returns the country of an IP address (ISO 3166-1 alpha-2), or null if it is unknown. */
export type FindCountry = (address: string) => string | null

/** Reads the file of COUNTRY_DATABASE; returns undefined for an empty path. */
export async function openCountries(path: string): Promise<FindCountry | undefined> {
  if (path === '') return undefined
  const bytes = await readFile(path).catch(({ code }) => refuse(`cannot be read (${code})`))
  try {
    const reader = new Reader<CountryResponse>(bytes)
    const find: FindCountry = (text) => {
      const address = plainAddress(text)
      const version = isIP(address)
      // The reader returns a result for any text, and for IPv6 in an IPv4 database.
      if (version === 0 || version > reader.metadata.ipVersion) return null
      return reader.get(address)?.country?.iso_code ?? null
    }
    // Detects a database of another kind now, and not with the first visitor.
    find('192.0.2.1')
    return find
  } catch {
    return refuse('is no database in the MaxMind DB format')
  }
}

function refuse(what: string): never {
  throw new SettingRefused(
    `The file that COUNTRY_DATABASE names ${what}: download one, such as GeoLite2 Country, or leave the setting empty.`,
  )
}
