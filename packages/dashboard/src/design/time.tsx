import { useEffect, useState } from 'react'

const dateTime = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
})
const dateTimeSeconds = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  timeZoneName: 'short',
})
const clock = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
})
const formats = {
  date: dateTime,
  clock,
  seconds: new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' }),
}
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })

/** An instant as a date and a time of day; the exact one is in its title. */
export function Time({
  at,
  as = 'date',
}: {
  at: string
  as?: 'date' | 'seconds' | 'ago' | 'clock'
}) {
  const date = new Date(at)
  const now = useNow(as === 'ago' ? 15_000 : undefined)
  const text = as === 'ago' ? ago(now - date.getTime()) : formats[as].format(date)
  return (
    <time dateTime={at} title={dateTimeSeconds.format(date)} className="whitespace-nowrap tabular">
      {text}
    </time>
  )
}

export function dateText(at: string): string {
  return dateTime.format(new Date(at))
}

export function ago(milliseconds: number): string {
  const seconds = Math.round(milliseconds / 1_000)
  if (Math.abs(seconds) < 10) return 'just now'
  if (Math.abs(seconds) < 60) return relative.format(-seconds, 'second')
  if (Math.abs(seconds) < 3_600) return relative.format(-Math.round(seconds / 60), 'minute')
  if (Math.abs(seconds) < 86_400) return relative.format(-Math.round(seconds / 3_600), 'hour')
  if (Math.abs(seconds) < 2_592_000) return relative.format(-Math.round(seconds / 86_400), 'day')
  if (Math.abs(seconds) < 31_536_000) {
    return relative.format(-Math.round(seconds / 2_592_000), 'month')
  }
  return relative.format(-Math.round(seconds / 31_536_000), 'year')
}

/** The present moment, looked at again in steps of `milliseconds`; without them, once. */
export function useNow(milliseconds: number | undefined): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    if (milliseconds === undefined) return
    const timer = setInterval(() => setNow(Date.now()), milliseconds)
    return () => clearInterval(timer)
  }, [milliseconds])
  return now
}

/** 1:02:03 or 2:03. */
export function durationText(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds))
  const [hours, minutes, rest] = [
    Math.floor(whole / 3_600),
    Math.floor((whole % 3_600) / 60),
    whole % 60,
  ]
  const two = (number: number) => String(number).padStart(2, '0')
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`
}
