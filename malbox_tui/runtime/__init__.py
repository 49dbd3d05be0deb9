"""Puts the product together and runs it."""

from malbox_tui.engine.clock import SystemClock
from malbox_tui.runtime.assembly import (
    ResultReader,
    TaskReader,
    login_name,
    open_intake,
    open_reader,
    open_results,
    pause_of,
    start_engine,
    start_engine_at_rest,
)
from malbox_tui.runtime.engine_thread import EngineThread
from malbox_tui.runtime.patient_loop import PatientLoop, run_patiently

__all__ = [
    "EngineThread",
    "PatientLoop",
    "ResultReader",
    "SystemClock",
    "TaskReader",
    "login_name",
    "open_intake",
    "open_reader",
    "open_results",
    "pause_of",
    "run_patiently",
    "start_engine",
    "start_engine_at_rest",
]
