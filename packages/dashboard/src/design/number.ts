const whole = new Intl.NumberFormat('en')

export function count(number: number): string {
  return whole.format(number)
}

/** `12 recordings`, `1 recording`. */
export function counted(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`
}

export function bytesText(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB']
  let amount = bytes
  let unit = 0
  while (amount >= 1_000 && unit < units.length - 1) {
    amount /= 1_000
    unit++
  }
  return `${unit === 0 || amount >= 100 ? Math.round(amount) : amount.toFixed(1)} ${units[unit]}`
}
